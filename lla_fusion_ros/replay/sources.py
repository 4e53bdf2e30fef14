"""Messages of a bag offered to a Perception: the live nodes' own pairing and classifying, from a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, takewhile
from typing import TYPE_CHECKING

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import CameraTopics, ViewTopics
from lla_fusion_ros.bags.types import Message
from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.bundle.score_bundle import score_bundle, with_class_names
from lla_fusion_ros.detections.adapter import image_adapter
from lla_fusion_ros.detections.frame import FrameDetections
from lla_fusion_ros.messages.contract import STATIC_TRANSFORMS, TRANSFORMS, is_rectified, label_topic
from lla_fusion_ros.stream.frames import ViewFrame
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.stream.received import ViewQueue
from lla_fusion_ros.stream.scores import ScoreReader, bad_score, listed_classes
from lla_fusion_ros.stream.stream_settings import CameraWiring, StreamSettings
from lla_fusion_ros.types.errors import BagError, InputError
from lla_fusion_ros.types.settings import FusionSettings

if TYPE_CHECKING:
    from lla_fusion_ros.networks.classifier import Classifier

# Offline nothing is in a hurry, so nothing may be dropped for want of room.
_ROOM = 1000
Cameras = Sequence[CameraTopics] | Sequence[ViewTopics]
Carry = Callable[[str, Message], None]  # a message about geometry and the camera that it is about, if one


def make_perception(
    bundle: Bundle,
    cameras: Cameras,
    stream: StreamSettings,
    fusion: FusionSettings,
    device: str = "auto",
    precision: str = "auto",
    wiring: Mapping[str, CameraWiring] | None = None,
    engine: str = "auto",
    networks: Callable[[], Classifier] | None = None,
) -> Perception:
    """For these cameras of a bag; the networks are loaded only where images have to be classified."""
    names = [camera.name for camera in cameras]
    stream = replace(stream, queue_depth=_ROOM)
    own = {
        camera.name: replace((wiring or {}).get(camera.name, CameraWiring()), detections_type=camera.type)
        for camera in cameras
        if isinstance(camera, CameraTopics)
    }
    if bundle.for_scores:
        perception = Perception(bundle, None, names, stream, fusion, own)
        perception.topics |= {
            each.name: each.detections for each in cameras if isinstance(each, CameraTopics)
        }
        return perception
    if isinstance(cameras[0], ViewTopics):
        return Perception(bundle, None, names, stream, fusion)
    classifier = load_networks(bundle, device, precision, engine) if networks is None else networks()
    own_core = networks is not None or not classifier.on_cpu
    workers = 1 if own_core else len(os.sched_getaffinity(0))
    perception = Perception(bundle, classifier, names, stream, fusion, own, workers=workers)
    images = {camera.name: camera.image for camera in cameras if isinstance(camera, CameraTopics)}
    perception.joining.rectified = {name for name, topic in images.items() if is_rectified(topic)}
    return perception


def load_networks(bundle: Bundle, device: str, precision: str, engine: str) -> Classifier:
    """Ready to run, each call on one thread."""
    from lla_fusion_ros.networks.classifier import Classifier

    classifier = Classifier(bundle, device, precision, engine=engine, threads=1)
    classifier.warm_up()
    return classifier


def with_names(bundle: Bundle, bag: Bag, cameras: Cameras, listed: str = "") -> Bundle:
    """An open bundle for scores with its classes: those that the user lists, else those that a detector lists
    beside its detections, else those that it names there, sorted."""
    if listed or not bundle.is_open:
        return with_class_names(bundle, listed)
    topics = [label_topic(each.detections) for each in cameras if isinstance(each, CameraTopics)]
    for message in bag.messages({topic.name for topic in bag.summary.topics if topic.name in topics}):
        with suppress(InputError):
            return score_bundle(listed_classes(message.data))
    return score_bundle(named_classes(bundle, bag, cameras))


def named_classes(bundle: Bundle, bag: Bag, cameras: Cameras) -> list[str]:
    """What the bag's detections call classes, sorted, numbers by their size."""
    types = {each.detections: each.type for each in cameras if isinstance(each, CameraTopics)}
    reader = ScoreReader(bundle)
    reason = f"no detection in {', '.join(types)} has a class and a score"
    for message in bag.messages(types):
        with suppress(InputError):
            found = image_adapter(types[message.topic]).read(message.data)
            if isinstance(found, FrameDetections):
                if bad := bad_score(found):
                    reason = f"{message.topic} {bad}"
                    continue
                for own in found.scores or ():
                    reader.claims(own, found.class_names)
    if not reader.named:
        raise BagError(f"the bag cannot be fused: {reason}")
    return sorted(
        reader.names()[: reader.named],
        key=lambda name: (0, int(name), name) if name.isdecimal() else (1, 0, name),
    )


def bag_views(
    bag: Bag,
    cameras: Cameras,
    perception: Perception,
    bundle: Bundle,
    start: int = 0,
    objects: str = "",
    carry: Carry | None = None,
) -> Iterator[list[ViewFrame]]:
    """The frames of a bag in the order they became complete; `completed` is the recorder's time.

    Args:
        start: recorder's time in nanoseconds from which messages count.
        objects: topic of objects in space beside the cameras' boxes, where there is one.
        carry: hears what is about geometry, in the order of the bag.
    """
    inputs: dict[str, list[tuple[str, str]]] = {}  # topic of the bag -> cameras, topics below them
    for camera in cameras:
        if isinstance(camera, ViewTopics):
            inputs[camera.views] = [(camera.name, "views")]
            inputs[camera.embeddings] = [(camera.name, "views/embeddings")]
        else:
            if camera.image:
                images = "crops" if camera.crops else "image"
                kind = f"{images}/compressed" if camera.compressed else images
                inputs[camera.image] = [(camera.name, kind)]
            if not camera.crops:
                inputs.setdefault(camera.detections, []).append((camera.name, "detections"))
    if isinstance(perception.queue, ViewQueue):
        _learn_bundles(bag, cameras, perception.queue, bundle)
    geometry = geometry_inputs(cameras)
    topics = {**inputs, **geometry, **({objects: ""} if objects else {})}
    for message in chain(_told_before(bag, geometry, start), bag.messages(topics, start)):
        if message.topic == objects:
            perception.offer_objects(message.data)
        if offer_geometry(perception, cameras, message):
            if carry is not None:
                carry(geometry[message.topic], message)
        elif message.topic in inputs:
            ready = [perception.offer(*own, message.data, message.time) for own in inputs[message.topic]]
            if any(ready) and len(perception.queue.ready) >= perception.frames_at_once:
                yield perception.views()
    perception.queue.finish()
    while perception.queue.ready:
        yield perception.views()


def _told_before(bag: Bag, geometry: Mapping[str, str], start: int) -> Iterator[Message]:
    """Where the cameras are fixed is told once, at the beginning of a bag."""
    fixed = [topic for topic in geometry if topic != TRANSFORMS]
    return takewhile(lambda message: message.time < start, bag.messages(fixed)) if start else iter(())


def geometry_inputs(cameras: Cameras) -> dict[str, str]:
    """Topics that tell where cameras are, and the camera of each that is about one."""
    own = {camera.info: camera.name for camera in cameras if camera.info}
    return {**own, STATIC_TRANSFORMS: "", TRANSFORMS: ""}


def offer_geometry(perception: Perception, cameras: Cameras, message: Message) -> bool:
    """Take a message that is about geometry; False where it is about something else."""
    camera = geometry_inputs(cameras).get(message.topic)
    if camera is None:
        return False
    if camera:
        perception.offer(camera, "camera_info", message.data)
    else:
        perception.offer_transforms(message.topic, message.data)
    return True


def _learn_bundles(bag: Bag, cameras: Cameras, queue: ViewQueue, bundle: Bundle) -> None:
    """Which bundle each camera's views come from; a bag that does not say is taken at its word."""
    infos = {f"{each.views}/info": each.name for each in cameras if isinstance(each, ViewTopics)}
    for camera in infos.values():
        queue.offer_bundle(camera, bundle.hash)
    for message in bag.messages(infos):
        queue.offer(infos[message.topic], "views/info", message.data)
    for camera, other in queue.foreign.items():
        raise BagError(
            f"the views of camera '{camera}' come from the bundle {other[:12]}, "
            f"not from '{bundle.source}' ({bundle.hash[:12]}); give that one with --bundle"
        )
