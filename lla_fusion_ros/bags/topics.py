"""Which topics of a bag are cameras: found by type and namespace, or named by the user."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lla_fusion_ros.bags.definitions import fits_vision_msgs
from lla_fusion_ros.bags.types import Summary, Topic
from lla_fusion_ros.detections.adapter import adapter_for, known_types
from lla_fusion_ros.messages.contract import CAMERA_INFO, COMPRESSED_IMAGE, DETECTIONS, IMAGE
from lla_fusion_ros.types.errors import BagError, InputError

EMBEDDINGS_SUFFIX = "/embeddings"
CROPS_SUFFIX = "/crops"
# Topics of the right types that are results, never inputs.
_OUTPUTS = ("/annotated", "/fused_classes", EMBEDDINGS_SUFFIX)


@dataclass(frozen=True, slots=True)
class CameraTopics:
    """A camera in a bag: its images, the boxes in them and the message type of these.

    Where objects were recorded cut out, `image` is the topic of crops and there are no detections. Where only
    scores are wanted, there is no image. `info` is its CameraInfo, where there is one.
    """

    name: str
    image: str
    detections: str
    compressed: bool
    type: str = DETECTIONS
    info: str = ""

    @property
    def crops(self) -> bool:
        """Whether its images are crops of single objects."""
        return not self.detections


@dataclass(frozen=True, slots=True)
class ViewTopics:
    """A camera whose crops went through the networks when the bag was recorded."""

    name: str
    views: str
    embeddings: str
    info: str = ""


@dataclass(frozen=True, slots=True)
class Wiring:
    """The cameras of a bag, and why others are not; `missing` says what to do where there is none.

    `objects` is the topic of objects in space beside the boxes of cameras, where there is one.
    """

    cameras: tuple[CameraTopics, ...]
    views: tuple[ViewTopics, ...]
    missing: tuple[str, ...]
    objects: str = ""


def find_cameras(summary: Summary, with_images: bool = True, objects: str = "") -> Wiring:
    """Pair every topic of detections with the images of the nearest namespace.

    Without images every topic of detections is a camera.

    Args:
        objects: the topic of objects in space to use, where there are several.
    """
    filled = [topic for topic in summary.topics if topic.count]
    images = [topic for topic in filled if topic.type in (IMAGE, COMPRESSED_IMAGE) and not _is_output(topic)]
    crops = [topic for topic in images if _stream(topic).endswith(CROPS_SUFFIX)]
    images = [topic for topic in images if topic not in crops]
    arrays = [topic for topic in filled if _readable(topic.type)]
    embeddings = {topic.name for topic in filled if topic.name.endswith(EMBEDDINGS_SUFFIX)}
    missing = []
    views, detections = [], []
    for topic in arrays:
        if refusal := _refusal(topic):
            missing.append(refusal)
        elif topic.name + EMBEDDINGS_SUFFIX in embeddings:
            views.append(ViewTopics(_parent(topic.name), topic.name, topic.name + EMBEDDINGS_SUFFIX))
        elif not _is_output(topic):
            detections.append(topic)
    in_space = [topic for topic in detections if _in_space(topic.type)]
    if len(in_space) > 1 and not objects:  # those in a camera's namespace are its own
        in_space = [topic for topic in in_space if not _has_camera(topic, images)]
    detections = [topic for topic in detections if topic not in in_space]
    space, problem = _objects(in_space, objects)
    missing += [problem] if problem else []
    cameras: list[CameraTopics] = []
    if not with_images:
        for topic in detections:
            name = _unique(_parent(topic.name), topic, cameras)
            cameras.append(CameraTopics(name, "", topic.name, False, topic.type))
        missing += [] if cameras else [f"no detections: record them as one of {_READABLE}"]
        return Wiring(tuple(cameras), (), tuple(missing), space.name if space else "")
    for topic in detections:
        nearest = _nearest(topic, images)
        if len({_stream(image) for image in nearest}) > 1:
            names = ", ".join(image.name for image in nearest)
            missing.append(
                f"{topic.name} could belong to {names}: say which with --camera NAME=IMAGE,DETECTIONS"
            )
        elif nearest:
            image = _preferred(nearest)
            name = _unique(_shared_name(topic, image), topic, cameras)
            cameras.append(_camera(name, image, topic))
    beside = space is not None and bool(cameras)
    boxed = {camera.image.removesuffix("/compressed") for camera in cameras}
    for stream in dict.fromkeys(map(_stream, images)):
        if space is not None and stream not in boxed:  # they are in the images of all cameras
            image = _preferred([each for each in images if _stream(each) == stream])
            cameras.append(_camera(_parent(stream), image, space))
    for stream in dict.fromkeys(map(_stream, crops)):
        topic = _preferred([each for each in crops if _stream(each) == stream])
        if _parent(stream) not in {camera.name for camera in cameras}:
            compressed = topic.type == COMPRESSED_IMAGE
            cameras.append(CameraTopics(_parent(stream), topic.name, "", compressed))
    if not cameras and not views:
        missing += _reasons(images, [*detections, *in_space])
    return Wiring(
        tuple(replace(camera, info=_info(summary, camera.image)) for camera in cameras),
        tuple(replace(each, info=_info(summary, each.views)) for each in views),
        tuple(missing),
        space.name if space is not None and beside else "",
    )


def name_cameras(summary: Summary, named: list[str], with_images: bool = True, objects: str = "") -> Wiring:
    """As the user named them: NAME=IMAGE_TOPIC,DETECTIONS_TOPIC, or without images NAME=DETECTIONS_TOPIC."""
    types = {topic.name: topic for topic in summary.topics}
    cameras = []
    for text in named:
        name, equals, topics = text.partition("=")
        image, comma, detections = topics.partition(",")
        if not with_images:
            bare = find_cameras(summary, False).cameras
            own = next((each for each in bare if each.detections == (detections or image)), None)
            if not name or own is None:
                known = ", ".join(each.detections for each in bare) or "none"
                raise BagError(f"--camera {text}: expected NAME=DETECTIONS_TOPIC; the bag has {known}")
            cameras.append(replace(own, name=name))
            continue
        if not (name and equals and image and comma and detections):
            raise BagError(f"--camera {text}: expected NAME=IMAGE_TOPIC,DETECTIONS_TOPIC")
        for topic in (image, detections):
            if topic not in types:
                raise BagError(f"--camera {text}: the bag has no topic {topic}; it has {', '.join(types)}")
        found = types[image].type
        if found not in (IMAGE, COMPRESSED_IMAGE):
            raise BagError(f"--camera {text}: {image} is {found}, expected {IMAGE} or {COMPRESSED_IMAGE}")
        found = types[detections].type
        if not _readable(found):
            raise BagError(f"--camera {text}: {detections} is {found}, expected one of {_READABLE}")
        if refusal := _refusal(types[detections]):
            raise BagError(f"--camera {text}: {refusal}")
        camera = _camera(name, types[image], types[detections])
        cameras.append(replace(camera, info=_info(summary, image)))
    used = {camera.detections for camera in cameras}
    filled = [topic for topic in summary.topics if topic.count and _in_space(topic.type)]
    space, problem = _objects([topic for topic in filled if topic.name not in used], objects)
    return Wiring(tuple(cameras), (), (problem,) if problem else (), space.name if space else "")


def _objects(topics: list[Topic], wanted: str) -> tuple[Topic | None, str]:
    """The topic of objects in space, or why it is not clear which."""
    known = {topic.name: topic for topic in topics}
    if wanted and wanted not in known:
        raise BagError(f"objects_topic {wanted}: the bag has {', '.join(known) or 'no objects in space'}")
    if len(topics) > 1 and not wanted:
        return None, f"objects in space are in {', '.join(known)}: say which with --set objects_topic=NAME"
    return (known[wanted] if wanted else topics[0] if topics else None), ""


def _info(summary: Summary, beside: str) -> str:
    """The CameraInfo beside a topic of images, as ROS has it; empty where there is none."""
    infos = {topic.name for topic in summary.topics if topic.type == CAMERA_INFO and topic.count}
    parent = beside.removesuffix("/compressed").rpartition("/")[0]
    return next((name for name in (f"{parent}/camera_info",) if name in infos), "")


def _readable(type_name: str) -> bool:
    adapter = adapter_for(type_name)
    return adapter is not None


def _in_space(type_name: str) -> bool:
    adapter = adapter_for(type_name)
    return adapter is not None and adapter.in_space


_READABLE = ", ".join(name for name in sorted(known_types()) if _readable(name))


def _refusal(topic: Topic) -> str:
    """Why the bytes of a topic of detections cannot be read; empty where they can."""
    if topic.type == DETECTIONS and not fits_vision_msgs(topic.type, topic.definition):
        return f"{topic.name} is of an older vision_msgs without track ids; record it with 4.0 or later"
    adapter = adapter_for(topic.type)
    assert adapter is not None
    try:
        adapter.check_definition(topic.definition)
    except InputError as error:
        return f"{topic.name}: {error}"
    return ""


def _camera(name: str, image: Topic, detections: Topic) -> CameraTopics:
    compressed = image.type == COMPRESSED_IMAGE
    return CameraTopics(name, image.name, detections.name, compressed, detections.type)


def _reasons(images: list[Topic], detections: list[Topic]) -> list[str]:
    if not images and not detections:
        return ["no images, no detections and no recorded views: there is nothing to fuse"]
    if not detections:
        return [f"no detections: run a detector and record its output, too, as one of {_READABLE}"]
    if not images:
        return ["no sensor_msgs/Image or CompressedImage topic: record the images the boxes were found in"]
    return []


def _is_output(topic: Topic) -> bool:
    return topic.name.endswith(_OUTPUTS)


def _stream(image: Topic) -> str:
    """The raw and the compressed form of the same images are one stream."""
    return image.name.removesuffix("/compressed")


def _parts(name: str) -> list[str]:
    return name.strip("/").split("/")[:-1]


def _common(first: list[str], second: list[str]) -> list[str]:
    shared = []
    for left, right in zip(first, second, strict=False):
        if left != right:
            break
        shared.append(left)
    return shared


def _nearest(detections: Topic, images: list[Topic]) -> list[Topic]:
    """The image topics that share most of the namespace with these detections."""
    shared = {image.name: len(_common(_parts(detections.name), _parts(_stream(image)))) for image in images}
    most = max(shared.values(), default=0)
    return [image for image in images if shared[image.name] == most]


def _has_camera(detections: Topic, images: list[Topic]) -> bool:
    """Whether one camera alone shares its namespace with these detections."""
    nearest = _nearest(detections, images)
    shared = {_stream(image) for image in nearest if _common(_parts(detections.name), _parts(_stream(image)))}
    return len(shared) == 1


def _preferred(images: list[Topic]) -> Topic:
    """Of the forms of one stream, the one with more messages; raw where they are equal."""
    return max(images, key=lambda image: (image.count, image.type == IMAGE))


def _parent(name: str) -> str:
    return "/".join(_parts(name)) or "camera"


def _shared_name(detections: Topic, image: Topic) -> str:
    return "/".join(_common(_parts(detections.name), _parts(_stream(image)))) or "camera"


def _unique(name: str, detections: Topic, cameras: list[CameraTopics]) -> str:
    taken = {camera.name for camera in cameras}
    return name if name not in taken else detections.name.strip("/")
