"""What nodes share that take images: subscriptions, networks, and the views they publish."""

from __future__ import annotations

import array

import torch
from sensor_msgs.msg import Image

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.images.crops import Pixels
from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.images import ImageMessage
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.ros.managed_node import ManagedNode
from lla_fusion_ros.ros.node_settings import NetworkSettings, NodeSettings
from lla_fusion_ros.ros.subscriptions import Inputs
from lla_fusion_ros.stream.classify import Fallback
from lla_fusion_ros.stream.frame_messages import bundle_message, view_messages
from lla_fusion_ros.stream.frames import ViewFrame
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.stream.stream_settings import CameraWiring, StreamSettings
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.settings import FusionSettings

WARM_UP_CROPS = 16
TRANSPORTS = {"auto": ("image", "image/compressed"), "raw": ("image",), "compressed": ("image/compressed",)}


class ImageNode(ManagedNode):
    """A managed node whose core begins with images and tracked boxes.

    With the transport `auto` both image topics of a camera are heard until one of them speaks.
    """

    def make_perception(self, bundle: Bundle, fusion: FusionSettings | None) -> Perception:
        """Networks on their device; advertises the topics of views and annotated images."""
        classifier = self._make_classifier(bundle)
        stamp = self.get_clock().now().nanoseconds
        for camera in self.parameters.cameras:
            self.outputs.latch(bundle_message(camera, bundle, stamp))
            self.outputs.advertise(contract.views_topic(camera), contract.DETECTIONS)
            self.outputs.advertise(contract.embeddings_topic(camera), contract.IMAGE)
            self.outputs.advertise(contract.annotated_topic(camera), contract.IMAGE)
        return Perception(
            bundle,
            classifier,
            self.parameters.cameras,
            self.parameters.of(StreamSettings),
            fusion,
            {
                camera: CameraWiring(time_offset=seconds)
                for camera, seconds in self.parameters.time_offsets.items()
            },
            cv_bridge_fallback(),
            self.tally,
            self.guard,
        )

    def _make_classifier(self, bundle: Bundle) -> Classifier:
        settings = self.parameters.of(NetworkSettings)
        torch.set_num_threads(settings.threads)
        classifier = Classifier(bundle, settings.device, settings.precision)
        if settings.device == "auto" and classifier.device.type == "cpu":
            self.get_logger().warning("no CUDA device found: the networks run on the CPU")
        classifier.warm_up(WARM_UP_CROPS)
        self.get_logger().info(f"networks ready on {classifier.device}, {classifier.precision}")
        self.about |= {"device": str(classifier.device), "precision": classifier.precision}
        return classifier

    def free(self) -> None:
        super().free()
        if torch.cuda.is_available():  # give cached device memory back
            torch.cuda.empty_cache()

    def subscribe(self, inputs: Inputs) -> None:
        self._chosen: dict[str, str] = {}
        for camera in self.parameters.cameras:
            self._subscribe_images(inputs, camera)
            self.listen(inputs, camera, "detections")

    def _subscribe_images(self, inputs: Inputs, camera: str) -> None:
        for topic in TRANSPORTS[self.parameters.of(NetworkSettings).image_transport]:
            self.listen(inputs, camera, topic)

    def receive(self, camera: str, topic: str, raw: bytes, received: int | None = None) -> None:
        if topic in TRANSPORTS["auto"] and self._chosen.get(camera) != topic:
            self._chosen[camera] = topic
            for other in TRANSPORTS["auto"]:
                if other != topic and self.inputs is not None:
                    self.inputs.unsubscribe(f"{camera}/{other}")
        super().receive(camera, topic, raw, received)

    def look(self, inputs: Inputs, silent: frozenset[str]) -> None:
        """A camera whose publisher is gone may come back by the other transport."""
        super().look(inputs, silent)
        for camera in silent & self._chosen.keys():
            if not inputs.has_publisher(f"{camera}/{self._chosen[camera]}"):
                del self._chosen[camera]
                self._subscribe_images(inputs, camera)

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


def cv_bridge_fallback() -> Fallback | None:
    """Decodes images of encodings that the package does not know itself; None where there is no cv_bridge of
    ROS 2 (the PyPI package of that name is ROS 1's)."""
    try:
        from cv_bridge import CvBridge, CvBridgeError
    except ImportError:
        return None
    bridge = CvBridge()

    def decode(message: ImageMessage) -> Pixels:
        image = Image(
            height=message.height,
            width=message.width,
            encoding=message.encoding,
            is_bigendian=int(message.is_bigendian),
            step=message.step,
            data=array.array("B", message.data),
        )
        try:
            return Pixels(bridge.imgmsg_to_cv2(image, "bgr8"), "bgr")
        except (CvBridgeError, ValueError, TypeError) as error:
            raise InputError(f"cv_bridge cannot decode encoding '{message.encoding[:40]}': {error}") from None

    return decode
