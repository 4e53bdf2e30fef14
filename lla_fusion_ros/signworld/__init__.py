"""The package's own small world: a road with signs, seen from a vehicle with several cameras."""

from lla_fusion_ros.signworld.camera import Camera
from lla_fusion_ros.signworld.drive import CameraFrame, Drive
from lla_fusion_ros.signworld.drives import demo_drive
from lla_fusion_ros.signworld.optics import Conditions
from lla_fusion_ros.signworld.outside import OUTSIDE_KINDS
from lla_fusion_ros.signworld.scene import RoadsideObject
from lla_fusion_ros.signworld.settings import Blackout, DriveSettings, IdentitySwitch, Stretch
from lla_fusion_ros.signworld.signs import CLASS_NAMES

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
