"""Annotations for Foxglove, read by another implementation of CDR."""

from __future__ import annotations

import pytest

from lla_fusion_ros.bags.definitions import typestore
from lla_fusion_ros.messages.annotations import Annotation, write_annotations
from lla_fusion_ros.messages.contract import ANNOTATIONS


@pytest.mark.parametrize("texts", [(), ("7: stop 93%",), ("a", "<b>שלום</b>", "")])
def test_another_reader_finds_boxes_words_and_colours(texts):
    drawn = [
        Annotation((10.0 + row, 20.0, 4.0, 6.0), text, (1.0, 0.5, 0.0)) for row, text in enumerate(texts)
    ]
    read = typestore().deserialize_cdr(write_annotations(3_000_000_007, drawn), ANNOTATIONS)
    assert [each.text for each in read.texts] == list(texts)
    assert len(read.circles) == 0 and len(read.points) == len(texts)
    for row, (box, text) in enumerate(zip(read.points, read.texts, strict=True)):
        corners = [(point.x - row, point.y) for point in box.points]
        assert corners == [(8, 17), (12, 17), (12, 23), (8, 23)]
        assert (box.type, box.thickness, box.outline_color.g, box.fill_color.a) == (2, 2.0, 0.5, 0.0)
        assert (text.position.x - row, text.position.y, text.text_color.a) == (8, 17, 1.0)
        assert (box.timestamp.sec, text.timestamp.nanosec) == (3, 7)
