"""Processes that die and come back while the drive plays."""

from __future__ import annotations

import signal
from pathlib import Path

from faults.core import Shot
from faults.drive import CAMERAS, SECOND
from faults.outcome import Checks
from faults.registry import fault
from faults.scene import Scene
from faults.stage import PATIENCE
from lla_fusion_ros.bags.writer import BagWriter
from lla_fusion_ros.messages import contract
from lla_fusion_ros.types.settings import FusionSettings

WARN = 1


def _kill_and_restart(scene: Scene, checks: Checks, name: str, sig: int = signal.SIGKILL) -> None:
    """End a node in the midst of its work; its successor knows nothing and says nothing old."""
    scene.drive(10)
    scene.flow(scene.road.take(8))  # work is under way
    process = scene.processes[name]
    code = process.stop(sig, PATIENCE)
    expected = -signal.SIGKILL if sig == signal.SIGKILL else 0
    checks.that(code == expected, f"{name} ended with code {code}, not {expected}: {process.log[-2000:]}")
    checks.that("Traceback" not in process.log, f"{name} printed a traceback:\n{process.log[-3000:]}")
    scene.flow(scene.road.take(10))  # the cameras do not notice
    scene.judge()  # what it said before it died was right
    scene.come_back(name)


@fault(
    "kill -9 of the perception process at work, restart",
    "the new process fuses the first frame that reaches it and says nothing that the old one knew",
)
def perception_killed(scene: Scene, checks: Checks) -> int:
    _kill_and_restart(scene, checks, "perception")
    return 1


@fault(
    "SIGTERM while the networks run, restart",
    "exit code 0, no traceback; then as above",
)
def sigterm_during_inference(scene: Scene, checks: Checks) -> int:
    _kill_and_restart(scene, checks, "perception", signal.SIGTERM)
    return 1


@fault(
    "kill -9 of the classifier process at work, restart",
    "the fusion node reports silent cameras and goes on with the first frame of the new classifier",
    scene="distributed",
    bounded=False,
)
def classifier_killed(scene: Scene, checks: Checks) -> int:
    scene.drive(10)
    scene.processes["crop_classifier"].stop(signal.SIGKILL, PATIENCE)
    scene.graph.spin_until(
        lambda: all(
            scene.diagnosed.level_and_message("class_fusion", camera)[0] == WARN
            and "silent" in scene.diagnosed.level_and_message("class_fusion", camera)[1]
            for camera in CAMERAS
        ),
        timeout=PATIENCE,
        what="both cameras reported as silent",
    )
    scene.judge()
    scene.come_back("crop_classifier", keeps_tracks=True)
    return 1


@fault(
    "kill -9 of the fusion process at work, restart",
    "the new process has labels and bundle of the classifier again and fuses the first frame",
    scene="distributed",
    bounded=False,
)
def fusion_killed(scene: Scene, checks: Checks) -> int:
    _kill_and_restart(scene, checks, "class_fusion")
    return 1


@fault(
    "kill -9 of a camera's process, restart",
    "the other camera goes on, the dead one is reported as silent, and its new frames are fused",
    bounded=False,
)
def camera_killed(scene: Scene, checks: Checks) -> int:
    # the camera's process starts when it starts: let frames of both come in any order
    relaxed = FusionSettings(max_lateness=60.0, clock_jump=120.0)
    for name in ("clock_jump", "max_lateness"):
        checks.that(scene.set_parameter("perception", name, getattr(relaxed, name)).successful, name)
    checks.that(scene.set_parameter("perception", "identity", "camera").successful, "identity")
    scene.forget_answers(relaxed, "camera")
    shots, folder = _record_camera(scene)
    _camera_for_a_while(scene, folder, 0.0, scene.answers_of("right") + 10)
    scene.play_until("left", lambda: "silent" in _says(scene, "right"), "the silent camera reported")
    start = (scene.road.newest - shots[0].stamp) / SECOND
    _camera_for_a_while(scene, folder, start, scene.answers_of("right") + 1)
    scene.road.skip_beyond(shots[-1].stamp)
    _until_the_dead_are_gone(scene)
    scene.settle()
    checks.that(scene.set_parameter("perception", "identity", "global").successful, "identity")
    for name in ("max_lateness", "clock_jump"):
        default = getattr(FusionSettings(), name)
        checks.that(scene.set_parameter("perception", name, default).successful, name)
    return 2


def _says(scene: Scene, camera: str) -> str:
    return scene.diagnosed.level_and_message("perception", camera)[1]


def _record_camera(scene: Scene) -> tuple[list[Shot], Path]:
    """What the right camera will send, as a bag for the process that plays it."""
    road = scene.road.fork()
    shots = [road.next_of("right") for _ in range(300)]
    folder = scene.stage.folder / "camera"
    with BagWriter(folder) as writer:
        images, boxes = f"/{contract.compressed_topic('right')}", f"/{contract.detections_topic('right')}"
        writer.add(images, contract.COMPRESSED_IMAGE)
        writer.add(boxes, contract.DETECTIONS)
        for shot in shots:
            writer.write(images, shot.stamp, shot.image)
            writer.write(boxes, shot.stamp, shot.detections)
    scene.expect_from_elsewhere(shots)
    return shots, folder


def _until_the_dead_are_gone(scene: Scene) -> None:
    """While a dead publisher is still on the graph, nodes cannot tell what DDS loses on its topic."""
    topics = (contract.compressed_topic("right"), contract.detections_topic("right"))
    for _ in range(2):  # the nodes find it out a moment before us or after
        scene.graph.spin_until(
            lambda: all(scene.vehicle.count_publishers(f"/{topic}") == 1 for topic in topics),
            PATIENCE,
            "DDS to forget the killed camera",
        )
        scene.diagnosed.fresh(scene.nodes)


def _camera_for_a_while(scene: Scene, bag: Path, start: float, answers: int) -> None:
    """A camera's process, killed when so many of its frames have come through."""
    arguments = (str(bag), "--clock", "0", "--rate", "0.3", "--start", f"{start:.3f}")
    camera = scene.stage.start("lla_fusion_ros.ros bag_player", "camera", *arguments)
    scene.play_until(
        "left", lambda: scene.answers_of("right") >= answers, "frames of the right camera's process"
    )
    camera.stop(signal.SIGKILL, PATIENCE)
    scene.stage.forget(camera)
