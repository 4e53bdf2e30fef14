"""What a user may set about the nodes themselves; free of ROS, so that the manual can be made anywhere."""

from __future__ import annotations

from dataclasses import dataclass

from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.settings import PRECISIONS, FusionSettings, check_settings, setting


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Every node has these."""

    autostart: bool = setting(True, "configure and activate by itself; false: wait for a lifecycle manager")
    model: str = setting(
        "",
        "model file (.safetensors), or the name of one that ships: signworld, gtsrb, belgium; has to be set",
    )
    input_reliability: str = setting(
        "auto",
        "QoS of the inputs; auto: reliable, and best effort where a publisher offers no more",
        choices=("auto", "reliable", "best_effort"),
    )
    input_depth: int = setting(10, "messages that DDS keeps for each input until they are taken", 1, 1000)
    output_depth: int = setting(10, "messages that DDS keeps for each output until they are sent", 1, 1000)
    max_hypotheses: int = setting(0, "classes listed of each distribution, surest first; 0: all", 0, 1000)
    silent_after: float = setting(
        1.0, "seconds without a message after which a camera is reported as silent", 0.1, 3600.0
    )

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Nodes that run the networks have these."""

    device: str = setting("auto", "auto, cpu, cuda or cuda:0; auto takes CUDA where there is one")
    precision: str = setting(
        "auto",
        "of the networks; float16: on CUDA; int8: convolutions in 8 bits, on a CPU; auto: int8 on an x86 CPU",
        choices=PRECISIONS,
    )
    threads: int = setting(1, "CPU threads of the networks; more only helps on idle cores", 1, 256)
    image_transport: str = setting(
        "auto",
        "raw: <camera>/image; compressed: <camera>/image/compressed; auto: whichever sends first",
        choices=("auto", "raw", "compressed"),
    )

    def __post_init__(self) -> None:
        check_settings(self)


CAMERAS_DESCRIPTION = "names of the cameras; their topics are <camera>/image, <camera>/detections, ..."
TIME_OFFSET_DESCRIPTION = "seconds added to the stamps of this camera's detections before pairing"
TIME_OFFSET_RANGE = (-10.0, 10.0)

# Parameters by node: settings classes, and where only some of their fields matter, which.
Group = tuple[type, tuple[str, ...] | None]
NODES: dict[str, tuple[Group, ...]] = {
    "perception": (
        (NodeSettings, None),
        (NetworkSettings, None),
        (StreamSettings, None),
        (FusionSettings, None),
    ),
    "crop_classifier": ((NodeSettings, None), (NetworkSettings, None), (StreamSettings, None)),
    "class_fusion": (
        (NodeSettings, None),
        (StreamSettings, ("sync_wait", "sync_memory", "queue_depth", "identity")),
        (FusionSettings, None),
    ),
}
# What a running node can change: everything about streams and fusion.
CHANGEABLE_GROUPS = (StreamSettings, FusionSettings)
CHANGEABLE_FIELDS = ("max_hypotheses",)


def is_changeable(group: type, name: str) -> bool:
    """Whether a parameter may change while the node runs."""
    return name in CHANGEABLE_FIELDS or group in CHANGEABLE_GROUPS
