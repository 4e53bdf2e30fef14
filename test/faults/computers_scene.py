"""Two computers with a link between them: the right camera and its classifier are on the far one, the left
camera, its classifier, the fusion node and whoever listens on the near one."""

from __future__ import annotations

import os
import struct
import time
from typing import Any

from faults.drive import CAMERAS
from faults.outcome import Checks
from faults.scene import Scene
from faults.stage import PATIENCE, Stage
from lla_fusion_ros.messages import contract
from support.camera import stamp_of
from support.processes import RosProcess

NEAR, FAR = CAMERAS
NODES = ("class_fusion", f"crop_classifier_{NEAR}", f"crop_classifier_{FAR}")
FUSION, NEAR_NODE, FAR_NODE = NODES
BEAT = 0.05  # seconds between frames: two cameras at 10 Hz
# Where views that came over the link can end.
ENDS = (
    "fused_frames",
    "unused_frames",
    "dropped_queue_full",
    "dropped_views_without_embeddings",
    "dropped_bad_embeddings",
    "waiting_views",
    "waiting_frames",
)
# Publishes what comes through a pipe: number of the topic, length, bytes.
FAR_CAMERA = """
import struct, sys
import rclpy
from rclpy.qos import QoSProfile
from sensor_msgs.msg import CompressedImage
from vision_msgs.msg import Detection2DArray

rclpy.init()
node = rclpy.create_node("far_camera")
kinds = (CompressedImage, Detection2DArray)
topics = [node.create_publisher(kind, name, QoSProfile(depth=50)) for kind, name in zip(kinds, sys.argv[2:4])]
with open(sys.argv[1], "rb") as pipe:
    while head := pipe.read(5):
        number, size = struct.unpack("<BI", head)
        topics[number].publish(pipe.read(size))
"""


class FarTopic:
    """A publisher on the far computer."""

    def __init__(self, number: int, name: str, scene: TwoComputers) -> None:
        self.topic_name = f"/{name}"
        self._number, self._scene = number, scene

    def publish(self, data: bytes) -> None:
        if self._scene.far_is_up:
            self._scene.pipe.write(struct.pack("<BI", self._number, len(data)) + data)

    def get_subscription_count(self) -> int:
        return int(self._scene.vehicle.count_subscribers(self.topic_name))


class FarCamera:
    """As support.camera.CameraOnGraph, elsewhere."""

    def __init__(self, name: str, scene: TwoComputers) -> None:
        self.images = FarTopic(0, contract.compressed_topic(name), scene)
        self.detections = FarTopic(1, contract.detections_topic(name), scene)


class TwoComputers(Scene):
    """Attributes:
    far_is_up: whether the far camera can send.
    """

    def __init__(self, stage: Stage, share: float = 1.0) -> None:
        assert stage.link is not None
        self.link, self._pipes = stage.link, 0
        self.start_camera(stage)
        super().__init__(stage, NODES, share)

    def start_camera(self, stage: Stage) -> None:
        """The process of the far camera, and the way to it."""
        self._pipes += 1
        path = stage.folder / f"camera_{self._pipes}"
        os.mkfifo(path)
        names = (contract.compressed_topic(FAR), contract.detections_topic(FAR))
        self.far_camera = stage.start(FAR_CAMERA, "far_camera", str(path), *names, prefix=self.link.far)
        self.pipe = open(os.open(path, os.O_RDWR), "wb", buffering=0)  # noqa: SIM115 - for as long as we are
        self.far_is_up = True

    def camera(self, name: str) -> Any:
        return FarCamera(name, self) if name == FAR else super().camera(name)

    def start(self, name: str, **options: Any) -> RosProcess:
        if name != FUSION:
            options["params"] = {"cameras": [name.rpartition("_")[2]], "output_depth": 10}
        return super().start(name, prefix=self.link.far if name == FAR_NODE else (), **options)

    def play(self, seconds: float) -> None:
        """Both cameras for a while, at their pace."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            self.send(self.road.next())
            while time.monotonic() < min(now + BEAT, end):
                self.graph.executor.spin_once(timeout_sec=BEAT / 5)
            for process in self.stage.processes:
                process.check()

    def seconds_until_answers(self) -> float:
        """Until a far frame that is sent from now on is answered."""
        begun, stamp = time.monotonic(), self.road.newest
        while not any(m.header.frame_id == FAR and stamp_of(m) > stamp for m in self.fused[self._judged :]):
            self.play(BEAT)
            if time.monotonic() - begun > PATIENCE:
                raise AssertionError(f"no answer to the far camera in {PATIENCE:g} s")
        return time.monotonic() - begun

    def check_balance(self, checks: Checks) -> None:
        """Every view that left the far computer arrived or is counted; each that arrived has an end."""
        for _ in range(5):  # a frame under way gets a few reports more
            self.diagnosed.fresh(self.nodes)
            sent, found = self.growth(FAR_NODE, FAR)["frames"], self.growth(FUSION, FAR)
            came = found["views_messages"]
            ended = sum(found[end] for end in ENDS)
            if sent == came + found["dropped_views_lost"] and ended == came:
                break
        checks.that(
            sent == came + found["dropped_views_lost"], f"{sent} views sent, {came} came, counted: {found}"
        )
        checks.that(ended == came, f"{came} views came, {ended} are accounted for: {found}")
