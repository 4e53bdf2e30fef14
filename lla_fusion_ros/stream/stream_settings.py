"""What a user may set about the way from messages to crops; nodes declare parameters from these fields."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.detections.frame import to_image_pixels
from lla_fusion_ros.messages.contract import DETECTIONS
from lla_fusion_ros.tracking.tracker import TrackerSettings
from lla_fusion_ros.types.settings import check_settings, setting

IDENTITIES = ("auto", "global", "camera")
TRACKER = TrackerSettings()


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """Settings of pairing, queues and crops; a bad value is refused with a sentence that names it."""

    sync_tolerance: float = setting(
        0.01, "seconds by which the stamps of an image and its detections may differ", 0.0, 1.0
    )
    sync_wait: float = setting(2.0, "seconds that an image and detections wait for each other", 0.01, 60.0)
    sync_memory: int = setting(
        256, "megabytes of a camera's images that wait for their detections", 1, 100_000
    )
    sync_lead: float = setting(
        0.05,
        "seconds by which detections may come before the image of their stamp; where most come earlier, "
        "they are refused",
        0.0,
        60.0,
    )
    queue_depth: int = setting(
        4, "frames per camera that wait for the networks; the newest are kept", 1, 1000
    )
    min_box_size: float = setting(4.0, "least width and height of a box in pixels", 1.0, 10_000.0)
    max_detections: int = setting(
        256, "most detections of a frame that are classified: the largest", 1, 10_000
    )

    identity: str = setting(
        "auto",
        "auto: ids count for their camera, unless known to be global, and the built-in tracker gives ids "
        "where there are none; camera: ids count for their camera; global: one id is one object in every "
        "camera",
        choices=IDENTITIES,
    )
    class_names: str = setting(
        "",
        "of model scores: the classes in the order of their numbers, separated by commas, or the detector's "
        "label file, one a line; empty: as the detector's label_info says, in a replay sorted, else as they "
        "come",
    )
    objects_topic: str = setting(
        "",
        "objects in space with ids (vision_msgs/Detection3DArray), beside the boxes of all cameras: a box "
        "that an object overlaps is that object; empty: none, or in a replay the bag's",
    )
    tracker_keep: float = setting(
        TRACKER.keep, "built-in tracker: seconds without a box after which a track ends", 0.05, 60.0
    )
    tracker_sure: float = setting(
        TRACKER.sure,
        "built-in tracker: score from which a box begins a track; others only continue one; 0: every box",
        0.0,
        1.0,
    )
    tracker_confirm: int = setting(
        TRACKER.confirm, "built-in tracker: boxes that a track needs before it gets an id", 1, 100
    )
    tracker_agility: float = setting(
        TRACKER.agility,
        "built-in tracker: how quickly objects change their speed: 1 steady, 10 erratic",
        0.1,
        100.0,
    )

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def tracker(self) -> TrackerSettings:
        """Of the built-in tracker."""
        return TrackerSettings(
            self.tracker_keep, self.tracker_sure, self.tracker_confirm, self.tracker_agility
        )


@dataclass(frozen=True, slots=True)
class CameraWiring:
    """What a user may set about one camera.

    Attributes:
        detections_type: message type of its detections, `package/msg/Type`.
        time_offset: seconds added to the stamps of its detections before pairing.
        box_frame: how the detector made its input of the image, see `detections.frame`.
        box_size: width and height of that input in pixels; not looked at for `image`.
    """

    detections_type: str = DETECTIONS
    time_offset: float = 0.0
    box_frame: str = "image"
    box_size: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        # one box, to have all of it checked
        to_image_pixels(np.zeros((1, 5)), self.box_frame, self.box_size, (1.0, 1.0))
