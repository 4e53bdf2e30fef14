"""Who is who in one camera: ids for boxes of a detector that gives none."""

from lla_fusion_ros.tracking.tracker import Tracker, TrackerSettings

__all__ = ["Tracker", "TrackerSettings"]
