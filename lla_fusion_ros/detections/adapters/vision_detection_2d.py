"""vision_msgs/Detection2DArray: what most detectors publish; few fill the ids."""

from __future__ import annotations

from lla_fusion_ros.detections.adapter import (
    VISION_BOX,
    Adapter,
    Message,
    bbox_of,
    header_of,
    hypotheses_of,
)
from lla_fusion_ros.detections.frame import FrameDetections, given_ids
from lla_fusion_ros.messages.cdr import Header, Raw
from lla_fusion_ros.messages.detections import parse_detections


def convert(message: Message, header: Header | None = None, name: str = "detections") -> FrameDetections:
    """Also of a Detection2DArray inside another message, which then brings its own header."""
    rows = message[name]
    ids, scope = given_ids(tuple(row["id"] for row in rows), "camera")
    return FrameDetections(
        header=header or header_of(message),
        bbox=bbox_of([row[field] for field in VISION_BOX] for row in rows),
        ids=ids,
        scores=tuple(hypotheses_of(row["results"]) for row in rows),
        id_scope=scope,
    )


def parse(raw: Raw, with_scores: bool) -> FrameDetections:
    """Quicker than by definition, above all where every detection lists all classes."""
    found = parse_detections(raw, with_scores)
    ids, scope = given_ids(found.ids, "camera")
    return FrameDetections(found.header, found.bbox, ids, found.scores if with_scores else None, scope)


ADAPTER = Adapter(("vision_msgs/Detection2DArray",), ({},), convert, parse)
