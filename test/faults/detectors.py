"""Detectors and geometry that fail or change while the built-in tracker and the association need them."""

from __future__ import annotations

import signal
from dataclasses import replace

import numpy as np
from rclpy.qos import QoSProfile
from std_msgs.msg import String
from vision_msgs.msg import Detection2DArray

from faults.detector_scene import NODE, YOLO, DetectorScene, OtherParticipant, rig, with_yolo
from faults.drive import CAMERAS
from faults.outcome import Checks
from faults.registry import fault
from faults.stage import PATIENCE
from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.geometry import write_camera_info, write_transforms
from lla_fusion_ros.signworld.geometry import VEHICLE

NAN, INF = float("nan"), float("inf")
ODD_SCORES = (NAN, 0.0, -1.0, 1e-300, INF, -INF, 0.49, 1e308)
NO_TURN = (0.0, 0.0, 0.0, 1.0)


def check_losses(scene: DetectorScene, checks: Checks) -> None:
    """The node counted what the core did, and nothing else."""
    scene.settle()
    for camera in CAMERAS:
        scene.check_counts(checks, NODE, camera, scene.core_losses(camera))


@fault(
    "a detector that misses half of the boxes at random and sees two that are not there in every frame",
    "the built-in tracker and the association name the same objects as the core alone",
    scene="detector",
)
def boxes_that_flicker(scene: DetectorScene, checks: Checks) -> int:
    rng = np.random.default_rng(11)
    frames = scene.times(60)
    for _ in range(frames):
        shot, boxes = scene.road.next(), scene.road.scene.boxes
        seen = boxes[rng.random(len(boxes)) > 0.5]
        ghosts = np.column_stack(
            [rng.uniform(60, 580, 2), rng.uniform(60, 420, 2), rng.uniform(12, 60, (2, 2))]
        )
        scene.step(with_yolo(shot, np.concatenate([seen, ghosts])))
    check_losses(scene, checks)
    return frames


@fault(
    "scores that are NaN, infinite, negative, zero",
    "such a box begins no track, which is no loss (`not_tracked`); the others of its frame are fused",
    scene="detector",
)
def scores_that_are_none(scene: DetectorScene, checks: Checks) -> int:
    frames = scene.times(20)
    for number in range(frames):
        shot, boxes = scene.road.next(), scene.road.scene.boxes
        scores = np.full(len(boxes), 0.9)
        scores[number % max(len(boxes), 1) :: 3] = ODD_SCORES[number % len(ODD_SCORES)]
        scene.step(with_yolo(shot, boxes, scores=scores))
    check_losses(scene, checks)
    return frames


@fault(
    "a detector with ids that leaves out all ids of every fourth message",
    "those boxes are counted (`empty_id`), the others keep their ids",
    scene="detector",
)
def ids_that_are_missing(scene: DetectorScene, checks: Checks) -> int:
    frames = scene.times(40)
    for number in range(frames):
        shot, seen = scene.road.next(), scene.road.scene
        scene.step(with_yolo(shot, seen.boxes, () if number % 4 == 3 else seen.ids))
    check_losses(scene, checks)
    missing = sum(scene.core_losses(camera)["dropped_empty_id"] for camera in CAMERAS)
    checks.that(missing, "no id was missing, the fault is too mild")
    return frames // 4


@fault(
    "one camera's detector is replaced by one of another message type, with ids of its own, and comes back",
    "the node follows the type (`detection_type_changes`), and ids of one are never taken for the other's",
    scene="detector",
    bounded=False,
)
def another_detector(scene: DetectorScene, checks: Checks) -> int:
    scene.drive(6)
    camera = scene.cameras["left"]
    scene.vehicle.destroy_publisher(camera.detections)
    with OtherParticipant(scene) as other:
        topic = contract.detections_topic("left")
        camera.detections = other.create_publisher(Detection2DArray, topic, QoSProfile(depth=500))
        scene.road.others = frozenset({"left"})
        scene.answered_again(keeps_tracks=True)
    scene.road.others = frozenset()
    scene.vehicle.destroy_publisher(camera.images)
    scene.cameras["left"] = scene.camera("left")
    scene.answered_again(keeps_tracks=True)
    scene.settle()
    changes = scene.growth(NODE, "left")["detection_type_changes"]
    checks.that(changes == 2, f"{changes} changes of type counted, not 2")
    return 2


@fault(
    "somebody publishes texts (std_msgs/String) on the topic of the detections",
    "every frame is fused as if nothing was",
    scene="detector",
    bounded=False,
)
def another_type_on_the_topic(scene: DetectorScene, checks: Checks) -> int:
    with OtherParticipant(scene) as other:
        texts = other.create_publisher(String, contract.detections_topic("left"), 10)
        for shot in scene.road.take(20):
            texts.publish(String(data="no boxes"))
            scene.step(shot)
    checks.that(scene.says("left", "detections type") == YOLO, "the node listens to something else")
    check_losses(scene, checks)
    return 20


@fault(
    "camera_info with another focal length from one frame to the next, and back (a zoom)",
    "objects are named as the core alone does with the same geometry",
    scene="detector",
)
def focal_length_changes(scene: DetectorScene, checks: Checks) -> int:
    info = rig().infos["right"]
    scene.drive(10)
    for factor in (1.5, 1.0):
        matrix = tuple(value * (factor if place in (0, 4) else 1) for place, value in enumerate(info.matrix))
        scene.say_info("right", write_camera_info(replace(info, matrix=matrix)))
        scene.drive(10)
    check_losses(scene, checks)
    return 2


@fault(
    "camera_info that cannot be: focal length zero, negative, NaN, and bytes that are no message",
    "the camera stays apart and says why; bytes are counted (`bad_message`); a good one joins it again",
    scene="detector",
)
def impossible_camera_info(scene: DetectorScene, checks: Checks) -> int:
    info = rig().infos["right"]
    for focal in (0.0, -600.0, NAN):
        matrix = (focal, *info.matrix[1:4], focal, *info.matrix[5:])
        scene.say_info("right", write_camera_info(replace(info, matrix=matrix)))
        scene.drive(4)
        scene.diagnosed.fresh(scene.nodes)
        says = scene.says("right", "geometry")
        checks.that("refused" in says, f"focal length {focal}: the node says {says!r}")
    scene.say_info("right", b"\0\1\0\0no camera_info at all")
    scene.say_info("right", scene.infos["right"])
    scene.drive(6)
    scene.diagnosed.fresh(scene.nodes)
    says = scene.says("right", "geometry")
    checks.that(says.startswith("joined"), f"with a good one again, the node says {says!r}")
    check_losses(scene, checks)
    return 4


@fault(
    "/tf_static moves a camera by a metre while objects are joined, and back",
    "each jump is counted and objects are parted, as the core alone does",
    scene="detector",
)
def transforms_jump(scene: DetectorScene, checks: Checks) -> int:
    scene.drive(12)
    before = int(scene.diagnosed.of_node(NODE)["transform jumps"])
    moved = [
        replace(each, place=(each.place[0], each.place[1] + 1.0, each.place[2])) for each in rig().mounts[1:]
    ]
    for mounts in ([rig().mounts[0], *moved], rig().mounts):
        scene.say_transforms(write_transforms(mounts))
        scene.drive(24)
    check_losses(scene, checks)
    jumps = int(scene.diagnosed.of_node(NODE)["transform jumps"]) - before
    checks.that(jumps == 2, f"{jumps} jumps counted, not 2")
    return 2


@fault(
    "transforms that cannot be: NaN, a quaternion of zeros, a frame within itself, a loop",
    "each is counted (`bad_transform`), and the others hold",
    scene="detector",
)
def impossible_transforms(scene: DetectorScene, checks: Checks) -> int:
    frame = rig().mounts[0].child
    good = rig().mounts[0]
    bad = (
        replace(good, place=(NAN, 0.0, 0.0)),
        replace(good, turn=(0.0, 0.0, 0.0, 0.0)),
        replace(good, header=Header(0, frame), child=frame, turn=NO_TURN),
        replace(good, header=Header(0, frame), child=VEHICLE, turn=NO_TURN),
    )
    scene.drive(6)
    before = int(scene.diagnosed.of_node(NODE).get("dropped_bad_transform", 0))
    for each in bad:
        scene.say_transforms(write_transforms([each]))
        scene.drive(2)
    check_losses(scene, checks)
    counted = int(scene.diagnosed.of_node(NODE).get("dropped_bad_transform", 0)) - before
    checks.that(counted == len(bad), f"{counted} transforms counted as bad, not {len(bad)}")
    return len(bad)


@fault(
    "kill -9 of the process with ONNX Runtime at work, restart without camera_info and transforms, which "
    "come later",
    "until they come the cameras stay apart, with a reason; then objects are joined",
    scene="detector",
    bounded=False,
)
def geometry_comes_late(scene: DetectorScene, checks: Checks) -> int:
    scene.drive(10)
    scene.flow(scene.road.take(8))
    scene.processes[NODE].stop(signal.SIGKILL, PATIENCE)
    scene.drain()
    scene.silence_geometry()
    scene.restart(NODE)
    before = {camera: scene.answers_of(camera) for camera in CAMERAS}
    scene.play_until(
        None,
        lambda: all(scene.answers_of(camera) > before[camera] for camera in CAMERAS),
        "answers of the new process",
    )
    scene.recover()
    scene.reset()
    scene.drive(10)
    scene.settle()
    says = scene.says("right", "geometry")
    checks.that("no camera_info has come" in says, f"without geometry the node says {says!r}")
    checks.that(not scene.wrong, f"{scene.wrong[:1]}")
    scene.tell_geometry()
    scene.reset()
    scene.drive(20)
    scene.settle()
    says = scene.says("right", "geometry")
    checks.that(says.startswith("joined"), f"with geometry the node says {says!r}")
    return 1
