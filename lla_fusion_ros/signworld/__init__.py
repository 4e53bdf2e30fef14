"""The package's own small world: a road with signs, seen from a vehicle with several cameras.

Settings and a seed come in; a `Drive` of camera frames with the truth, or tracks for training, go out. Equal
settings give equal pixels. Imports `types`.
"""

from lla_fusion_ros.signworld.camera import Camera, Conditions
from lla_fusion_ros.signworld.drive import CameraFrame, Drive, demo_drive
from lla_fusion_ros.signworld.drive_settings import Blackout, DriveSettings, IdentitySwitch, Stretch
from lla_fusion_ros.signworld.scene import RoadsideObject
from lla_fusion_ros.signworld.signs import CLASS_NAMES, OUTSIDE_KINDS

__all__ = [
    "CLASS_NAMES",
    "OUTSIDE_KINDS",
    "Blackout",
    "Camera",
    "CameraFrame",
    "Conditions",
    "Drive",
    "DriveSettings",
    "IdentitySwitch",
    "RoadsideObject",
    "Stretch",
    "demo_drive",
]
