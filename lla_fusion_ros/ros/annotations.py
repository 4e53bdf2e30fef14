"""`<camera>/annotations`: boxes and words for Foxglove, where foxglove_msgs is installed.

Later versions of its messages have more fields, so that a message is made of the installed classes, field by
field, and not of ready bytes as in bags.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rclpy.time import Time

from lla_fusion_ros.messages.annotations import LETTERS, THICKNESS, Annotation

try:
    from foxglove_msgs.msg import Color, ImageAnnotations, Point2, PointsAnnotation, TextAnnotation
except ImportError:  # nothing is published then
    ImageAnnotations = None


def image_annotations(stamp: int, annotations: Sequence[Annotation]) -> Any:
    """The message for the image with that stamp."""
    timestamp = Time(nanoseconds=stamp).to_msg()
    message = ImageAnnotations()
    for each in annotations:
        corners = [Point2(x=x, y=y) for x, y in each.corners]
        outline = _colour(each.colour, 1.0)
        message.points.append(
            PointsAnnotation(
                timestamp=timestamp,
                type=PointsAnnotation.LINE_LOOP,
                points=corners,
                outline_color=outline,
                thickness=THICKNESS,
            )
        )
        message.texts.append(
            TextAnnotation(
                timestamp=timestamp,
                position=corners[0],
                text=each.text,
                font_size=LETTERS,
                text_color=_colour((1.0, 1.0, 1.0), 1.0),
                background_color=_colour(each.background, 0.8),
            )
        )
    return message


def _colour(rgb: tuple[float, float, float], alpha: float) -> Any:
    red, green, blue = rgb
    return Color(r=red, g=green, b=blue, a=alpha)
