"""What nodes share that take images: subscriptions, networks, and the views they publish."""

from __future__ import annotations

import sys
import time
from collections import Counter
from functools import partial

from rclpy.exceptions import InvalidTopicNameException
from rclpy.validate_topic_name import validate_topic_name
from vision_msgs.msg import Detection2DArray, LabelInfo

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.cdr import CdrReader
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.networks.plugins import import_plugins
from lla_fusion_ros.ros.cv_bridge_images import cv_bridge_fallback
from lla_fusion_ros.ros.managed_node import ManagedNode
from lla_fusion_ros.ros.node_settings import NetworkSettings, NodeSettings
from lla_fusion_ros.ros.publishers import TYPES
from lla_fusion_ros.ros.subscriptions import Inputs
from lla_fusion_ros.ros.wiring import detections_class, offered_types, topics_of
from lla_fusion_ros.stream.frame_messages import bundle_message, view_messages
from lla_fusion_ros.stream.frames import ViewFrame
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.stream.stream_settings import CameraWiring, StreamSettings
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.settings import FusionSettings, words

WARM_UP_CROPS = 16
CROPS = ("crops", "crops/compressed")  # in the place of images and boxes
SCOPES = {"camera": "an object of this camera", "global": "one object in every camera"}
TRANSPORTS = {"auto": ("image", "image/compressed"), "raw": ("image",), "compressed": ("image/compressed",)}


class ImageNode(ManagedNode):
    """A managed node whose core begins with images and the boxes in them.

    With the transport `auto` both image topics of a camera are heard until one of them speaks. The boxes may
    be of any known type: the one that the graph offers is subscribed to.
    """

    def make_perception(self, bundle: Bundle, fusion: FusionSettings | None) -> Perception:
        """Networks on their device; advertises the topics of views and annotated images.

        Without networks there is neither an image nor a view: detections are all that comes.
        """
        self._scores = bundle.for_scores
        self._objects_topic = self.parameters.of(StreamSettings).objects_topic
        try:
            validate_topic_name(self._objects_topic or "none")
        except InvalidTopicNameException as error:
            raise InputError(f"objects_topic: {str(error).splitlines()[0]}") from None
        classifier = None if self._scores else self._make_classifier(bundle)
        stamp = self.get_clock().now().nanoseconds
        for camera in () if self._scores else self.parameters.cameras:
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
            {camera: self._camera_wiring(camera) for camera in self.parameters.cameras},
            cv_bridge_fallback(),
            self.tally,
            self.guard,
        )

    def _camera_wiring(self, camera: str) -> CameraWiring:
        own = self.parameters.of_camera(camera)
        return CameraWiring(time_offset=own.time_offset, box_frame=own.box_frame, box_size=own.box_size)

    def _make_classifier(self, bundle: Bundle) -> Classifier:
        settings = self.parameters.of(NetworkSettings)
        import_plugins(words(settings.plugins))
        classifier = Classifier(
            bundle,
            settings.device,
            settings.precision,
            engine=settings.engine,
            providers=words(settings.providers),
            threads=settings.threads,
        )
        for note in classifier.notes:
            self.get_logger().warning(note)
        classifier.warm_up(WARM_UP_CROPS)
        about = {name: getattr(classifier, name) for name in ("engine", "device", "precision")}
        self.get_logger().info("networks ready in {engine} on {device}, {precision}".format(**about))
        self.reporting.about |= about
        return classifier

    def free(self) -> None:
        super().free()
        torch = sys.modules.get("torch")  # a bundle of ONNX graphs does without
        if torch is not None and torch.cuda.is_available():  # give cached device memory back
            torch.cuda.empty_cache()

    def subscribe(self, inputs: Inputs) -> None:
        self._transport: dict[str, str] = {}  # by camera, once an image has come
        self._frame_ids: dict[str, str] = {}  # of the images, where cameras share a topic of detections
        self._unreadable: dict[str, str] = {}  # by camera: why its detections cannot be read
        cameras = self.parameters.cameras
        self._topics = {
            camera: topics_of(self, camera, self.parameters.of_camera(camera)) for camera in cameras
        }
        self._types = dict.fromkeys(cameras, contract.DETECTIONS)  # of the detections that are subscribed to
        self._heard = dict.fromkeys(cameras, 0.0)  # when detections came last
        self._names = {  # with namespace and remaps
            camera: {topic: self.resolve_topic_name(name) for topic, name in own.items()}
            for camera, own in self._topics.items()
        }
        used = Counter(own["detections"] for own in self._names.values())
        self._sharing = {camera for camera, own in self._names.items() if used[own["detections"]] > 1}
        if self._scores:  # no image tells the frame, so it is the camera's name
            self._frame_ids = {camera: camera for camera in cameras}
        for camera in cameras:
            self._subscribe_images(inputs, camera)
            # of the usual type, so that nothing is lost of a publisher that begins at once
            self._listen_to_detections(inputs, camera, contract.DETECTIONS, Detection2DArray)
            self._follow_type(inputs, camera)
            for topic in () if self._scores else CROPS:
                self.listen(inputs, camera, topic, self._topics[camera][topic])
        if self.perception is not None:
            self.perception.topics = {camera: own["detections"] for camera, own in self._names.items()}
            own_images = {camera: own["image"] for camera, own in self._topics.items()}
            self.perception.joining.rectified = {
                c for c, name in own_images.items() if contract.is_rectified(name)
            }
        if self._scores:
            for topic, camera in {own["detections"]: name for name, own in self._topics.items()}.items():
                on_labels = partial(self.receive, camera, "detections/label_info")
                inputs.subscribe_latched(LabelInfo, contract.label_topic(topic), on_labels)
        if self._objects_topic:
            inputs.subscribe(
                TYPES[contract.OBJECTS],
                self._objects_topic,
                self._receive_objects,
                partial(self.count_lost, "", "object_messages_lost"),
            )
        self.listen_to_geometry(inputs, {camera: own["camera_info"] for camera, own in self._topics.items()})
        awaited = [self._names[camera][topic] for camera in cameras for topic in self._awaited()]
        self.get_logger().info(f"waiting for {', '.join(awaited)}")

    def _awaited(self) -> tuple[str, ...]:
        if self._scores:
            return ("detections",)
        return TRANSPORTS[self.parameters.of(NetworkSettings).image_transport][0], "detections"

    def _subscribe_images(self, inputs: Inputs, camera: str) -> None:
        if self._scores:
            return
        for topic in TRANSPORTS[self.parameters.of(NetworkSettings).image_transport]:
            self.listen(inputs, camera, topic, self._topics[camera][topic])

    def _listen_to_detections(self, inputs: Inputs, camera: str, type_name: str, kind: type) -> None:
        assert self.perception is not None
        self.perception.set_detections_type(camera, type_name)
        inputs.unsubscribe(f"{camera}/detections")
        try:
            self.listen(inputs, camera, "detections", self._topics[camera]["detections"], kind)
        except RuntimeError as error:  # rcl's; a DDS participant has a topic with one type only
            self._types[camera] = ""
            raise InputError(
                f"{type_name} cannot be subscribed to: {str(error).partition(', at ')[0]}"
            ) from None
        self._types[camera] = type_name
        self._heard[camera] = time.monotonic()

    def _follow_type(self, inputs: Inputs, camera: str) -> None:
        """Subscribe to the type that a publisher offers.

        One that died is known for a while: where another type is offered and the present one is silent, the
        other one counts.
        """
        topic = self._topics[camera]["detections"]
        offered = offered_types(self, topic)
        current = self._types[camera]
        silent = time.monotonic() - self._heard[camera] > self.parameters.of(NodeSettings).silent_after
        if not offered or (current in offered and not (len(offered) > 1 and silent)):
            self._unreadable.pop(camera, None)
            return
        problem = ""
        for type_name in offered:
            if type_name == current:
                continue
            try:
                self._listen_to_detections(inputs, camera, type_name, detections_class(type_name))
            except InputError as error:
                problem = f"{self._names[camera]['detections']}: {error}"
                continue
            self._unreadable.pop(camera, None)
            return
        if problem and current not in offered:
            self._unreadable[camera] = problem

    def receive(self, camera: str, topic: str, raw: bytes, received: int | None = None) -> None:
        if topic in TRANSPORTS["auto"] and self._transport.get(camera) != topic:
            self._transport[camera] = topic
            for other in TRANSPORTS["auto"]:
                if other != topic and self.inputs is not None:
                    self.inputs.unsubscribe(f"{camera}/{other}")
        elif topic in CROPS:
            self._transport[camera] = topic
        elif topic == "detections":
            self._heard[camera] = time.monotonic()
            if self._scores:
                self.reporting.hear(camera)
        if camera in self._sharing and topic not in CROPS and not self._is_of(camera, topic, raw):
            return
        super().receive(camera, topic, raw, received)

    def _receive_objects(self, raw: bytes, received: int | None = None) -> None:
        if self.perception is not None:
            self.perception.offer_objects(raw)

    def _is_of(self, camera: str, topic: str, raw: bytes) -> bool:
        """Whether a message is this camera's: boxes on a shared topic name the image's frame."""
        try:
            frame_id = CdrReader(raw).header().frame_id
        except InputError:
            return True  # counted as a bad one
        if topic == "detections" and self._types[camera] == contract.OBJECTS:
            return True  # whose frame_id is no camera's
        if topic == "detections":
            return self._frame_ids.get(camera) == frame_id
        self._frame_ids[camera] = frame_id
        return True

    def look(self, inputs: Inputs, silent: frozenset[str]) -> None:
        """A camera whose publisher is gone may come back by the other transport, or as another type."""
        super().look(inputs, silent)
        for camera in silent & self._transport.keys():
            if not inputs.has_publisher(f"{camera}/{self._transport[camera]}"):
                del self._transport[camera]
                self._subscribe_images(inputs, camera)
        for camera in self.parameters.cameras:
            self._follow_type(inputs, camera)

    def troubles(self) -> dict[str, str]:
        return {**super().troubles(), **(self._unreadable if self.inputs is not None else {})}

    def wiring(self, camera: str) -> dict[str, str]:
        perception = self.perception
        if self.inputs is None or perception is None:
            return {}
        transport = self._transport.get(camera, self._awaited()[0])
        chosen = perception.chosen.get(camera)
        names = self._names[camera]
        inputs = {
            "image topic": names[transport],
            "detections topic": names["detections"],
            "detections type": self._types[camera],
            "camera_info topic": names["camera_info"],
        }
        if self._scores:
            del inputs["image topic"]
        if self._objects_topic:
            inputs["objects topic"] = self.resolve_topic_name(self._objects_topic)
        return {
            **({"crops topic": names[transport]} if transport in CROPS else inputs),
            "ids from": "not decided yet" if chosen is None else f"the {chosen.ids}",
            "an id is": "" if chosen is None else SCOPES[chosen.scope],
            "geometry": perception.joining.status(camera),
        }

    def connection(self, camera: str) -> str:
        how = self.wiring(camera)
        if not how.get("an id is"):
            return ""
        if "crops topic" in how:
            source = f"crops of {how['crops topic']}"
        else:
            boxes = f"{how['detections topic']} ({how['detections type']})"
            images = "scores, no images" if self._scores else f"images of {how['image topic']}"
            source = f"{images}, boxes of {boxes}"
        return f"{source}, ids from {how['ids from']}, an id is {how['an id is']}; {how['geometry']}"

    def publish_views(self, frame: ViewFrame) -> None:
        for message in view_messages(frame, self.parameters.of(NodeSettings).listing()):
            self.outputs.publish(message)

    def wants_views(self, camera: str) -> bool:
        """Whether anybody listens to the views of a camera."""
        if self._scores:
            return False
        topics = (contract.views_topic(camera), contract.embeddings_topic(camera))
        return any(self.outputs.wanted(topic) for topic in topics)

    def wants_annotated(self, camera: str) -> bool:
        """Whether anybody looks at the annotated images of a camera."""
        return self.outputs.wanted(contract.annotated_topic(camera))
