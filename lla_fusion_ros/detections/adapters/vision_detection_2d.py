"""vision_msgs/Detection2DArray: what most detectors publish; few fill the ids."""

from __future__ import annotations

from lla_fusion_ros.detections.adapter import Adapter, Message, header_of, vision_boxes
from lla_fusion_ros.detections.frame import FrameDetections, given_ids
from lla_fusion_ros.messages.cdr import Header, Raw
from lla_fusion_ros.messages.detections import parse_detections


def convert(message: Message, header: Header | None = None, name: str = "detections") -> FrameDetections:
    """Also of a Detection2DArray inside another message, which then brings its own header."""
    rows = message[name]
    return vision_boxes(header or header_of(message), rows, (row["id"] for row in rows))


def parse(raw: Raw, with_scores: bool) -> FrameDetections:
    """Quicker than by definition, above all where every detection lists all classes."""
    found = parse_detections(raw, with_scores)
    ids, scope = given_ids(found.ids, "camera")
    return FrameDetections(found.header, found.bbox, ids, found.scores if with_scores else None, scope)


ADAPTER = Adapter(("vision_msgs/Detection2DArray",), ({},), convert, parse)
