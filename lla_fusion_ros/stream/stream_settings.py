"""What a user may set about the way from messages to crops; nodes declare parameters from these fields."""

from __future__ import annotations

from dataclasses import dataclass

from lla_fusion_ros.types.settings import check_settings, setting


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """Settings of pairing, queues and crops; a bad value is refused with a sentence that names it."""

    sync_tolerance: float = setting(
        0.01, "seconds by which the stamps of an image and its detections may differ", 0.0, 1.0
    )
    sync_wait: float = setting(2.0, "seconds that an image and detections wait for each other", 0.01, 60.0)
    sync_memory: int = setting(
        256, "megabytes of images, per camera, that wait for their detections; the oldest goes", 1, 100_000
    )
    sync_lead: float = setting(
        0.05,
        "seconds by which detections may come before the image of their stamp; where most come earlier, "
        "their stamps are taken for wrong",
        0.0,
        60.0,
    )
    queue_depth: int = setting(
        4, "paired frames per camera that wait for the networks; newest wins, the rest is dropped", 1, 1000
    )
    min_box_size: float = setting(4.0, "least width and height of a box in pixels", 1.0, 10_000.0)
    max_detections: int = setting(
        256, "most detections of a frame that are classified: the largest", 1, 10_000
    )

    def __post_init__(self) -> None:
        check_settings(self)
