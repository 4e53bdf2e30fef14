"""The nodes as most people wire them: a detector's own messages without ids, the built-in tracker, cameras
joined by geometry, the networks in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import rclpy
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import serialize_message
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from faults.core import Core, Names, Shot
from faults.drive import CAMERAS, COMPRESSED, Road
from faults.outcome import NotPossible
from faults.scene import Scene
from faults.stage import PATIENCE, Stage
from lla_fusion_ros.bundle import load_bundle, save_bundle
from lla_fusion_ros.bundle.resources import find_model
from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.geometry import write_camera_info, write_transforms
from lla_fusion_ros.signworld.geometry import Rig, rig_of
from lla_fusion_ros.types.settings import FusionSettings
from support.camera import SECOND
from support.drive import short_road
from support.processes import RosProcess
from support.waiting import wait_for

YOLO = "yolo_msgs/msg/DetectionArray"
NODE = "perception"


@lru_cache(maxsize=1)
def rig() -> Rig:
    return rig_of(short_road())


def yolo_boxes(camera: str, stamp: int, boxes: Any, ids: Sequence[str] = (), scores: Any = 0.9) -> bytes:
    """yolo_msgs/DetectionArray with boxes [n, 4] as cx, cy, w, h; without ids as yolo_ros' detector sends."""
    from yolo_msgs.msg import Detection, DetectionArray

    message = DetectionArray()
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, SECOND)
    message.header.frame_id = camera
    boxes = np.asarray(boxes, float).reshape(-1, 4)
    for row, (box, score) in enumerate(zip(boxes, np.broadcast_to(scores, len(boxes)), strict=True)):
        found = Detection(class_id=1, class_name="sign", score=float(score), id=ids[row] if ids else "")
        found.bbox.center.position.x, found.bbox.center.position.y = box[:2]
        found.bbox.size.x, found.bbox.size.y = box[2:]
        message.detections.append(found)
    return bytes(serialize_message(message))


class YoloRoad(Road):
    """The drive as a detector without a tracker sees it, but for the cameras that have another detector."""

    def __init__(self) -> None:
        super().__init__()
        self.others: frozenset[str] = frozenset()

    def shot(self, index: int, stamp: int) -> Shot:
        shot, frame = super().shot(index, stamp), self.frames[index]
        return shot if frame.camera in self.others else with_yolo(shot, frame.boxes)


def with_yolo(shot: Shot, boxes: Any, ids: Sequence[str] = (), scores: Any = 0.9) -> Shot:
    """The frame with other boxes."""
    found = yolo_boxes(shot.camera, shot.stamp, boxes, ids, scores)
    return replace(shot, detections=found, detections_type=YOLO)


class DetectorCamera:
    """A camera and a detector without a tracker."""

    def __init__(self, node: Any, name: str, kind: type) -> None:
        qos = QoSProfile(depth=500)
        images = (
            (CompressedImage, contract.compressed_topic(name))
            if COMPRESSED[name]
            else (Image, contract.image_topic(name))
        )
        self.images = node.create_publisher(*images, qos)
        self.detections = node.create_publisher(kind, contract.detections_topic(name), qos)


class DetectorScene(Scene):
    """One perception node, told by camera_info and /tf_static where its cameras are."""

    def __init__(self, stage: Stage, share: float = 1.0) -> None:
        try:
            import onnx  # noqa: F401 - the graphs are made of the bundle's networks
            import onnxruntime  # noqa: F401
            from tf2_msgs.msg import TFMessage
            from yolo_msgs.msg import DetectionArray
        except ImportError as error:
            raise NotPossible(f"not installed here: {error}") from None
        from lla_fusion_ros.lab.importing.export import exported

        self.model = str(stage.folder / "graphs.safetensors")
        save_bundle(exported(load_bundle(find_model("signworld"))), self.model)
        self._detections_class = DetectionArray
        self.infos = {camera: write_camera_info(info) for camera, info in rig().infos.items()}
        self.transforms = write_transforms(rig().mounts)
        self._transforms_class = TFMessage
        self.road: YoloRoad
        super().__init__(stage, (NODE,), share, road=YoloRoad())
        self._infos = {
            camera: self.vehicle.create_publisher(CameraInfo, contract.camera_info_topic(camera), 10)
            for camera in CAMERAS
        }
        self._static: Any = None
        self.tell_geometry()
        self.reset()

    def new_core(self, settings: FusionSettings | None = None, identity: str = "auto") -> Core:
        return Core(CAMERAS, settings, "auto", self.model, "onnxruntime")

    def forget_answers(self, settings: FusionSettings | None = None, identity: str = "auto") -> None:
        core = self._core
        super().forget_answers(settings, identity)
        self._core, self._names = core, Names()
        core.reset()  # as the node, which still knows how well its cameras fit each other

    def start(self, name: str, **options: Any) -> RosProcess:
        params = {"identity": "auto", "model": self.model, "engine": "onnxruntime"}
        return super().start(name, params=params, **options)

    def camera(self, name: str) -> Any:
        return DetectorCamera(self.vehicle, name, self._detections_class)

    def tell_geometry(self) -> None:
        """Tell the node where its cameras are until it knows: it may be heard before it hears."""
        if self._static is None:
            qos = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
            topic = contract.STATIC_TRANSFORMS
            self._static = self.vehicle.create_publisher(self._transforms_class, topic, qos)
        self.say_transforms(self.transforms)
        for camera, info in self.infos.items():
            self._core.take_info(camera, info)

        def tell() -> None:
            for camera, publisher in self._infos.items():
                publisher.publish(self.infos[camera])
            self.recover()  # what it knows shows with a frame
            self.diagnosed.fresh(self.nodes)

        knows = "joined with other cameras"
        wait_for(
            lambda: all(self.says(camera, "geometry").startswith(knows) for camera in CAMERAS),
            PATIENCE,
            "a node that knows where its cameras are",
            tell,
        )

    def silence_geometry(self) -> None:
        """Nobody tells a node that starts now where its cameras are."""
        self._core = self.new_core()
        self.vehicle.destroy_publisher(self._static)
        self._static = None

    def say_info(self, camera: str, message: bytes) -> None:
        """Another CameraInfo, from now on."""
        self._infos[camera].publish(message)
        self._core.take_info(camera, message)
        self.diagnosed.fresh(self.nodes)

    def say_transforms(self, message: bytes) -> None:
        self._static.publish(message)
        self._core.take_transforms(message)
        self.diagnosed.fresh(self.nodes)

    def says(self, camera: str, key: str) -> str:
        """What the node tells about a camera."""
        return self.diagnosed.values(NODE, camera).get(key, "")

    def _stranger(self) -> Shot:
        return self.road.next()


class OtherParticipant:
    """A process of its own, as far as DDS can tell: the same topic may have another type here."""

    def __init__(self, scene: Scene) -> None:
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=int(scene.vehicle.context.get_domain_id()))
        self.node = rclpy.create_node("other", context=self._context)

    def __enter__(self) -> rclpy.node.Node:
        return self.node

    def __exit__(self, *_: object) -> None:
        self.node.destroy_node()
        self._context.shutdown()
