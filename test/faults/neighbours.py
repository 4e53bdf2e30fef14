"""Others on the graph, and the hands of an operator: watchers, readers that hang, a second node, settings
changed under load."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Sequence

from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from sensor_msgs.msg import Image
from vision_msgs.msg import Detection2D, Detection2DArray, ObjectHypothesisWithPose

from faults.drive import BEGIN, CAMERAS, SECOND, TENTH
from faults.outcome import Checks
from faults.registry import fault
from faults.scene import PARAMS, Scene
from faults.stage import PATIENCE, Diagnosed, Stage
from faults.transport import check_balance
from lla_fusion_ros.messages import contract
from support.camera import stamp_of

NAN, INF = float("nan"), float("inf")
NODE = "perception"
READER = """
import rclpy
from vision_msgs.msg import Detection2DArray

rclpy.init()
node = rclpy.create_node("reader")
node.create_subscription(Detection2DArray, "/fused_classes", lambda message: print("heard", flush=True), 10)
rclpy.spin(node)
"""


def stuck_reader(scene: Scene, checks: Checks, node: str, prefix: Sequence[str] = ()) -> None:
    """Somebody who reads the fused classes stops, and is killed in the end; the others get every frame."""
    reader = scene.stage.start(READER, "reader", prefix=prefix)
    scene.play_until(None, lambda: "heard" in reader.log, "the reader's first message")
    scene.recover()
    scene.diagnosed.fresh(scene.nodes)
    scene.note_counters()
    reader.popen.send_signal(signal.SIGSTOP)
    scene.drive(scene.times(200))
    reader.stop(signal.SIGKILL, PATIENCE)
    scene.stage.forget(reader)
    scene.drive(10)
    scene.settle()
    for camera in CAMERAS:
        scene.check_counts(checks, node, camera, {})


@fault(
    "who reads /fused_classes stops reading (SIGSTOP), and is killed in the end",
    "everybody else gets every frame, and memory does not grow",
    bounded=False,
)
def a_stuck_reader(scene: Scene, checks: Checks) -> int:
    stuck_reader(scene, checks, NODE)
    return 1


@fault(
    "`lla-fusion watch` comes while the drive plays, and is killed (-9)",
    "every frame is fused as if nobody watched",
    bounded=False,
)
def a_watcher_killed(scene: Scene, checks: Checks) -> int:
    watcher = scene.stage.start("lla_fusion_ros watch", "watcher")
    scene.play_until(None, lambda: re.search(r"[1-9]\d* frames", watcher.log), "what the watcher sees")
    scene.recover()
    scene.drive(20)
    watcher.stop(signal.SIGKILL, PATIENCE)
    scene.stage.forget(watcher)
    scene.drive(20)
    scene.settle()
    for camera in CAMERAS:
        scene.check_counts(checks, NODE, camera, {})
    return 1


@fault(
    "readers of /track_status, /class_sets and the annotated images come and go with every frame",
    "every frame is fused, whoever looks",
)
def readers_come_and_go(scene: Scene, checks: Checks) -> int:
    asked = (
        (DiagnosticArray, contract.TRACK_STATUS),
        (Detection2DArray, contract.CLASS_SETS),
        (Image, contract.annotated_topic("left")),
    )
    rounds = scene.times(30)
    for number in range(rounds):
        kind, topic = asked[number % len(asked)]
        reader = scene.vehicle.create_subscription(kind, topic, lambda message: None, 1)
        scene.drive(2)
        scene.vehicle.destroy_subscription(reader)
    scene.settle()
    for camera in CAMERAS:
        scene.check_counts(checks, NODE, camera, {})
    return rounds


@fault(
    "the node stands still for 3 s (SIGSTOP) while frames come",
    "cameras are answered again as they go on, and every frame is fused or counted",
    bounded=False,
)
def the_node_stands_still(scene: Scene, checks: Checks) -> int:
    scene.drive(20)
    scene.processes[NODE].popen.send_signal(signal.SIGSTOP)
    for shot in scene.road.take(24):
        scene.flow([shot])
        time.sleep(0.12)
    scene.processes[NODE].popen.send_signal(signal.SIGCONT)
    before, stamp = len(scene.fused), scene.road.newest
    scene.play_until(
        None,
        lambda: (
            {each.header.frame_id for each in scene.fused[before:] if stamp_of(each) > stamp} == {*CAMERAS}
        ),
        "answers to both cameras",
    )
    scene.recover()
    scene.diagnosed.fresh(scene.nodes)
    for camera in CAMERAS:
        sent = sum(each == camera for each, _ in scene._sent)
        check_balance(scene, checks, camera, sent, scene.answers_of(camera))
    return 1


@fault(
    "settings that change no answer are set between any two frames of a drive at full speed",
    "each is taken; every frame is fused or counted",
)
def settings_under_load(scene: Scene, checks: Checks) -> int:
    changes = [("sync_wait", 50.0), ("max_detections", 200), ("sync_memory", 100), ("queue_depth", 30)]
    changes += [("sync_wait", PARAMS["sync_wait"]), ("max_detections", 256), ("sync_memory", 256)]
    changes += [("queue_depth", PARAMS["queue_depth"])]
    frames = scene.times(80) // 2 * 2
    for number, shot in enumerate(scene.road.take(frames)):
        scene.flow([shot])
        name, value = changes[number % len(changes)]
        checks.that(scene.set_parameter(NODE, name, value).successful, f"{name} was not set")
    for name, value in changes[4:]:
        scene.set_parameter(NODE, name, value)
    answered = scene.recover()
    scene.diagnosed.fresh(scene.nodes)
    for camera in CAMERAS:
        sent = frames // 2 + 1
        check_balance(scene, checks, camera, sent, sum(each == camera for each, _ in answered))
    return frames


@fault(
    "a lifecycle manager deactivates and activates the node while frames come, then takes it down to "
    "unconfigured and up again",
    "the first frame afterwards is fused; after the second time nothing old is known",
    bounded=False,
)
def told_to_pause(scene: Scene, checks: Checks) -> int:
    def ask(*transitions: int) -> None:
        for transition in transitions:
            request = ChangeState.Request(transition=Transition(id=transition))
            answer = scene.graph.call(scene.vehicle, ChangeState, f"/{NODE}/change_state", request, PATIENCE)
            checks.that(answer.success, f"transition {transition} failed")

    scene.drive(6)
    off, on = Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_ACTIVATE
    again = (Transition.TRANSITION_CLEANUP, Transition.TRANSITION_CONFIGURE)
    for steps, forgets in (((), False), (again, True)):
        ask(off)
        scene.flow(scene.road.take(10))
        scene.drain()
        ask(*steps, on)
        scene.judge()
        scene.answered_again(keeps_tracks=not forgets)
    return 2


@fault(
    "a second perception node of the same name on the same topics",
    "both say the same, and /diagnostics and the log name the topic that two publish on",
    scene="alone",
    bounded=False,
)
def two_nodes_at_once(stage: Stage, checks: Checks) -> int:
    scene = Scene(stage, (NODE,))
    second = scene.start(NODE)
    scene.play_until(None, lambda: "two publishers on" in scene.diagnosed.of_node(NODE), "a word about it")
    told = scene.diagnosed.of_node(NODE)["two publishers on"]
    checks.that("/fused_classes" in told, f"two publishers are said to be on {told}")
    logs = scene.processes[NODE].log + second.log
    checks.that("two publishers on /fused_classes" in logs, "no log tells")
    second.stop(signal.SIGINT, PATIENCE)
    stage.forget(second)
    return 1


@fault(
    "a detector whose scores are fused sends boxes without scores, and with NaN, infinity, -1, percent",
    "a box without scores is counted (`unknown_class`), the good ones of its frame are fused; a message "
    "with the others is dropped and counted (`bad_scores`), and one line of the log names one",
    scene="alone",
)
def scores_of_nothing(stage: Stage, checks: Checks) -> int:
    params = {"model": "scores", "cameras": ["left"], "identity": "global"}
    node = stage.start("lla_fusion_ros.ros perception", NODE, params=params)
    detector = stage.graph.node("detector")
    boxes = detector.create_publisher(Detection2DArray, contract.detections_topic("left"), 50)
    fused = stage.graph.collect(detector, Detection2DArray, "/fused_classes", 50)
    diagnosed = Diagnosed(stage.graph, detector)
    good = scored("good", ("stop", 0.7))
    empty = [scored("zero", ("stop", 0.0)), scored("zeros", ("stop", 0.0), ("yield", 0.0)), scored("nothing")]
    wrong = [NAN, INF, -INF, -1.0, 90.0]
    stage.graph.wait_for_subscribers(boxes, timeout=PATIENCE)
    stage.graph.publish_until(boxes, message_of(1, [good]), lambda: fused, PATIENCE)
    diagnosed.fresh([NODE])
    before, rounds = diagnosed.counters(NODE, "left"), 10
    for number in range(rounds):
        fused.clear()
        bad = scored("bad", ("yield", 0.2), ("stop", wrong[number % len(wrong)]))
        boxes.publish(message_of(2 * number + 2, [good, bad]))
        boxes.publish(message_of(2 * number + 3, [*empty, good]))
        stage.graph.spin_until(lambda: fused, PATIENCE, "the good box of a frame")
        found = fused[0].detections
        checks.that([each.id for each in found] == ["good"], f"ids {[each.id for each in found]}")
        best = found[0].results[0].hypothesis
        checks.that(best.class_id == "stop" and best.score > 0.5, f"{best}")
    diagnosed.fresh([NODE])
    counted = diagnosed.counters(NODE, "left") - before
    for reason, count in (("unknown_class", rounds * len(empty)), ("bad_scores", rounds)):
        own = counted[f"dropped_{reason}"]
        checks.that(own == count, f"{own} {reason} counted, not {count}")
    lines = [line for line in node.log.splitlines() if "/left/detections says 'stop:" in line]
    checks.that(len(lines) == 1 and "percent" in lines[0], f"the log tells {lines}")
    return rounds * (len(empty) + 1)


def scored(name: str, *hypotheses: tuple[str, float]) -> Detection2D:
    """A box with what the detector says of it."""
    detection = Detection2D(id=name)
    detection.bbox.center.position.x = detection.bbox.center.position.y = 100.0
    detection.bbox.size_x = detection.bbox.size_y = 30.0
    for class_id, score in hypotheses:
        result = ObjectHypothesisWithPose()
        result.hypothesis.class_id, result.hypothesis.score = class_id, score
        detection.results.append(result)
    return detection


def message_of(tenths: int, detections: list[Detection2D]) -> Detection2DArray:
    message = Detection2DArray(detections=detections)
    message.header.frame_id = "left"
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(BEGIN + tenths * TENTH, SECOND)
    return message
