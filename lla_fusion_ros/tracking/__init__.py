"""Who is who: boxes, camera_info and transforms in, ids and joined tracks out.

`tracker` gives ids where a detector gives none; `association` joins tracks of several cameras by geometry.
Imports `types`, `messages` and `detections`.
"""

from lla_fusion_ros.tracking.tracker import Tracker, TrackerSettings

__all__ = ["Tracker", "TrackerSettings"]
