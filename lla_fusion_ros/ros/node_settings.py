"""What a user may set about the nodes themselves; free of ROS, so that the manual can be made anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lla_fusion_ros.detections import BOX_FRAMES
from lla_fusion_ros.messages.detections import Listing
from lla_fusion_ros.reliance.statements import USUAL_COVERAGE
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.settings import ENGINES, PRECISIONS, FusionSettings, check_settings, setting


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Every node has these."""

    autostart: bool = setting(True, "configure and activate by itself; false: wait for a lifecycle manager")
    model: str = setting(
        "",
        "model file (.safetensors), or signworld, gtsrb, belgium; scores: the detector's own scores are "
        "fused; has to be set",
    )
    input_reliability: str = setting(
        "auto",
        "QoS of the inputs; auto: reliable, and best effort where a publisher offers no more",
        choices=("auto", "reliable", "best_effort"),
    )
    input_depth: int = setting(10, "messages that DDS keeps for each input", 1, 1000)
    output_depth: int = setting(10, "messages that DDS keeps for each output", 1, 1000)
    listed_mass: float = setting(
        0.999,
        "share of the probability that the listed classes carry; one more entry, with an empty class_id, has "
        "the rest; 1.0: all classes are listed",
        0.5,
        1.0,
    )
    max_hypotheses: int = setting(0, "most classes listed of each distribution; 0: no limit", 0, 1000)
    class_id: str = setting(
        "number",
        "what class_id of the outputs is",
        choices=("number", "name"),
    )
    silent_after: float = setting(
        1.0, "seconds without a message after which a camera is silent", 0.1, 3600.0
    )

    def __post_init__(self) -> None:
        check_settings(self)

    def listing(self, class_names: Sequence[str] | None = None, reserved: int = 0) -> Listing:
        """What messages list of a distribution, always so many of the last classes; under names where these
        are given and wanted."""
        names = class_names if self.class_id == "name" else None
        return Listing(self.listed_mass, self.max_hypotheses, names, always=reserved)


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Nodes that run the networks have these."""

    engine: str = setting(
        "auto",
        "where the networks run; auto: ONNX Runtime for graphs in 8 bits and where torch cannot, else torch",
        choices=ENGINES,
    )
    providers: str = setting(
        "",
        "of ONNX Runtime: tensorrt, cuda, openvino, cpu; the first that is there is used; empty: by device",
    )
    plugins: str = setting(
        "", "Python modules with architectures of your own, separated by commas (docs/train.md)"
    )
    device: str = setting("auto", "auto, cpu, cuda or cuda:0; auto takes CUDA where there is one")
    precision: str = setting(
        "auto",
        "of the networks; float16: on CUDA; int8: convolutions in 8 bits, on a CPU; auto: int8 on an x86 CPU",
        choices=PRECISIONS,
    )
    threads: int = setting(1, "CPU threads of the networks; more only helps on idle cores", 1, 256)
    image_transport: str = setting(
        "auto",
        "which images are taken; auto: whichever topic sends first",
        choices=("auto", "raw", "compressed"),
    )

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True)
class StatementSettings:
    """Nodes that fuse have these."""

    coverage: float = setting(
        USUAL_COVERAGE,
        "share of objects whose set is to hold the true class in every frame; `lla-fusion info` shows what a "
        "model file can promise",
        0.5,
        0.995,
    )
    costs: str = setting("", "YAML file with the costs of decisions; empty: no decisions are published")

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True)
class CameraSettings:
    """Every camera has these, as `<camera>.NAME`."""

    image_topic: str = setting(
        "", "its images; empty: <camera>/image; compressed ones are at /compressed beside them"
    )
    detections_topic: str = setting(
        "", "the boxes in its images, of any known type; empty: <camera>/detections"
    )
    camera_info_topic: str = setting(
        "",
        "its calibration, which with /tf joins objects of several cameras; empty: camera_info beside the "
        "images, which count as rectified where their name ends in rect or rect_color",
    )
    time_offset: float = setting(
        0.0, "seconds added to the stamps of this camera's detections before pairing", -10.0, 10.0
    )
    box_frame: str = setting(
        "image",
        "pixels of its boxes: the image's own, or those of the detector's input, to which the image was "
        "resized (stretch), fitted with margins (letterbox), or cut (crop)",
        choices=BOX_FRAMES,
    )
    box_size: tuple[float, float] = setting(
        (0.0, 0.0), "width and height of the detector's input, where box_frame is not image", 0.0, 1e5
    )

    def __post_init__(self) -> None:
        check_settings(self)
        if self.box_frame != "image" and min(self.box_size) <= 0:
            raise InputError(
                f"setting 'box_frame' is {self.box_frame}: set 'box_size' to the width and height of the "
                "detector's input, as in [640, 640]"
            )


CAMERAS_DESCRIPTION = "names of the cameras; their topics are <camera>/image, <camera>/detections, ..."

# Parameters by node: settings classes, and where only some of their fields matter, which.
Group = tuple[type, tuple[str, ...] | None]
NODES: dict[str, tuple[Group, ...]] = {
    "perception": (
        (NodeSettings, None),
        (NetworkSettings, None),
        (StreamSettings, None),
        (FusionSettings, None),
        (StatementSettings, None),
    ),
    "crop_classifier": ((NodeSettings, None), (NetworkSettings, None), (StreamSettings, None)),
    "class_fusion": (
        (NodeSettings, None),
        (StreamSettings, ("sync_wait", "sync_memory", "queue_depth", "identity")),
        (FusionSettings, None),
        (StatementSettings, None),
    ),
}
# What a running node can change: everything about streams and fusion.
CHANGEABLE_GROUPS = (StreamSettings, FusionSettings)
CHANGEABLE_FIELDS = ("listed_mass", "max_hypotheses", "coverage")


def is_changeable(group: type, name: str) -> bool:
    """Whether a parameter may change while the node runs."""
    fixed = ("objects_topic", "class_names")
    return name in CHANGEABLE_FIELDS or (group in CHANGEABLE_GROUPS and name not in fixed)
