"""`class_fusion`: views of all cameras in, fused classes and warnings out; needs no GPU and no images."""

from __future__ import annotations

from functools import partial
from typing import Any

from vision_msgs.msg import VisionInfo

from lla_fusion_ros.ros.managed_node import ManagedNode
from lla_fusion_ros.ros.publishers import FusedOutput
from lla_fusion_ros.ros.subscriptions import Inputs
from lla_fusion_ros.ros.wiring import topics_of
from lla_fusion_ros.stream.frames import FusedFrame, ViewFrame
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.settings import FusionSettings


class ClassFusionNode(ManagedNode):
    """Fusion without networks: takes `<camera>/views` and `<camera>/views/embeddings` of its own bundle."""

    def __init__(self, **options: Any) -> None:
        super().__init__("class_fusion", **options)

    def build(self) -> Perception:
        bundle = self.load_bundle()
        if bundle.for_scores:
            raise InputError(f"model '{bundle.source}' has no networks: scores are fused by `perception`")
        perception = Perception(
            bundle,
            None,
            self.parameters.cameras,
            self.parameters.of(StreamSettings),
            self.parameters.of(FusionSettings),
            tally=self.tally,
            guard=self.guard,
        )
        self.fused_output = FusedOutput(self, bundle)
        return perception

    def subscribe(self, inputs: Inputs) -> None:
        for camera in self.parameters.cameras:
            on_info = partial(self.receive, camera, "views/info")
            inputs.subscribe_latched(VisionInfo, f"{camera}/views/info", on_info)
            self.listen(inputs, camera, "views")
            self.listen(inputs, camera, "views/embeddings")
        cameras = self.parameters.cameras
        settings = {camera: self.parameters.of_camera(camera) for camera in cameras}
        self.listen_to_geometry(
            inputs, {camera: topics_of(self, camera, own)["camera_info"] for camera, own in settings.items()}
        )
        awaited = [self.resolve_topic_name(f"{camera}/views") for camera in self.parameters.cameras]
        self.get_logger().info(f"waiting for {', '.join(awaited)}")

    def wiring(self, camera: str) -> dict[str, str]:
        return {} if self.perception is None else {"geometry": self.perception.joining.status(camera)}

    def publish(self, frame: FusedFrame | ViewFrame) -> None:
        assert isinstance(frame, FusedFrame) and self.fused_output is not None
        self.fused_output.publish(frame)
