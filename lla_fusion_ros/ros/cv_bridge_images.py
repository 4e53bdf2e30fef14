"""Images of encodings that only cv_bridge knows."""

from __future__ import annotations

import array

from sensor_msgs.msg import Image

from lla_fusion_ros.images.crops import Pixels
from lla_fusion_ros.messages.images import ImageMessage
from lla_fusion_ros.stream.classify import Fallback
from lla_fusion_ros.types.errors import InputError


def cv_bridge_fallback() -> Fallback | None:
    """Decodes images of encodings that the package does not know itself; None where there is no cv_bridge of
    ROS 2 (the PyPI package of that name is ROS 1's)."""
    try:
        from cv_bridge import CvBridge, CvBridgeError
    except ImportError:
        return None
    bridge = CvBridge()

    def decode(message: ImageMessage) -> Pixels:
        image = Image(
            height=message.height,
            width=message.width,
            encoding=message.encoding,
            is_bigendian=int(message.is_bigendian),
            step=message.step,
            data=array.array("B", message.data),
        )
        try:
            return Pixels(bridge.imgmsg_to_cv2(image, "bgr8"), "bgr")
        except (CvBridgeError, ValueError, TypeError) as error:
            raise InputError(f"cv_bridge cannot decode encoding '{message.encoding[:40]}': {error}") from None

    return decode
