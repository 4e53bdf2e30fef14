"""What nodes share that take images: subscriptions, networks, and the views they publish."""

from __future__ import annotations

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.messages import contract
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.ros.camera_inputs import CameraInputs
from lla_fusion_ros.ros.device import free_device, make_classifier
from lla_fusion_ros.ros.managed_node import ManagedNode
from lla_fusion_ros.ros.model import load_model
from lla_fusion_ros.ros.node_settings import NetworkSettings, NodeSettings
from lla_fusion_ros.ros.subscriptions import Inputs
from lla_fusion_ros.stream.frame_messages import bundle_message, view_messages
from lla_fusion_ros.stream.frames import ViewFrame
from lla_fusion_ros.stream.queues import FrameQueue


class ImageNode(ManagedNode):
    """A managed node whose core begins with images and tracked boxes."""

    queue: FrameQueue | None = None
    _camera_inputs: CameraInputs | None = None

    def load(self) -> tuple[Bundle, Classifier]:
        """The model and its networks; advertises the topics of views and annotated images."""
        own, networks = self.parameters.of(NodeSettings), self.parameters.of(NetworkSettings)
        bundle = load_model(own.model, self.get_logger())
        classifier = make_classifier(bundle, networks, self.get_logger())
        self.about = {
            "device": str(classifier.device),
            "precision": classifier.precision,
            "model": own.model,
            "model hash": bundle.hash,
        }
        stamp = self.get_clock().now().nanoseconds
        for camera in self.parameters.cameras:
            self.outputs.latch(bundle_message(camera, bundle, stamp))
            self.outputs.advertise(contract.views_topic(camera), contract.DETECTIONS)
            self.outputs.advertise(contract.embeddings_topic(camera), contract.IMAGE)
            self.outputs.advertise(contract.annotated_topic(camera), contract.IMAGE)
        return bundle, classifier

    def free(self) -> None:
        self.queue = None
        free_device()

    def subscribe(self, inputs: Inputs) -> None:
        assert self.queue is not None
        transport = self.parameters.of(NetworkSettings).image_transport
        self._camera_inputs = CameraInputs(self, inputs, self.queue, self.parameters.cameras, transport)

    def look(self, inputs: Inputs, silent: frozenset[str]) -> None:
        super().look(inputs, silent)
        if self._camera_inputs is not None:
            self._camera_inputs.listen_again(silent)
        if self.queue is not None:
            self.queue.expire()

    def describe(self) -> dict[str, str]:
        waiting = 0 if self.queue is None else len(self.queue.ready)
        return {**self.about, "waiting frames": str(waiting)}

    def waiting(self, camera: str) -> dict[str, int]:
        return {} if self.queue is None else self.queue.waiting(camera)

    def hints(self) -> dict[str, str]:
        if self.queue is None:
            return {}
        return {camera: self.queue.hint(camera) for camera in self.parameters.cameras}

    def publish_views(self, frame: ViewFrame) -> None:
        for message in view_messages(frame, self.parameters.of(NodeSettings).max_hypotheses):
            self.outputs.publish(message)

    def wants_views(self, camera: str) -> bool:
        """Whether anybody listens to the views of a camera."""
        topics = (contract.views_topic(camera), contract.embeddings_topic(camera))
        return any(self.outputs.wanted(topic) for topic in topics)

    def wants_annotated(self, camera: str) -> bool:
        """Whether anybody looks at the annotated images of a camera."""
        return self.outputs.wanted(contract.annotated_topic(camera))
