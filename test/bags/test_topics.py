"""Cameras are found by type and namespace."""

from __future__ import annotations

import pytest

from lla_fusion_ros.bags.topics import find_cameras, name_cameras
from lla_fusion_ros.bags.types import Summary, Topic
from lla_fusion_ros.messages.contract import COMPRESSED_IMAGE, DETECTIONS, IMAGE
from lla_fusion_ros.types.errors import BagError


def bag(*topics: tuple[str, str], counts: dict[str, int] | None = None) -> Summary:
    return Summary(tuple(Topic(name, kind, (counts or {}).get(name, 5)) for name, kind in topics), 0, 1)


def cameras(summary: Summary) -> list[tuple[str, str, str, bool]]:
    return [
        (each.name, each.image, each.detections, each.compressed) for each in find_cameras(summary).cameras
    ]


def test_the_contract_topics_are_found_by_namespace():
    summary = bag(
        ("/left/detections", DETECTIONS),
        ("/left/image", IMAGE),
        ("/right/detections", DETECTIONS),
        ("/right/image/compressed", COMPRESSED_IMAGE),
    )
    assert cameras(summary) == [
        ("left", "/left/image", "/left/detections", False),
        ("right", "/right/image/compressed", "/right/detections", True),
    ]


def test_a_single_camera_needs_no_common_namespace():
    summary = bag(("/camera/image_raw", IMAGE), ("/yolo/tracking", DETECTIONS))
    assert cameras(summary) == [("camera", "/camera/image_raw", "/yolo/tracking", False)]


def test_raw_is_preferred_unless_the_compressed_topic_holds_more():
    topics = (("/a/image", IMAGE), ("/a/image/compressed", COMPRESSED_IMAGE), ("/a/tracks", DETECTIONS))
    assert cameras(bag(*topics))[0][1] == "/a/image"
    assert cameras(bag(*topics, counts={"/a/image": 1}))[0][1] == "/a/image/compressed"


def test_results_of_an_earlier_run_are_not_taken_for_inputs():
    summary = bag(
        ("/a/annotated", IMAGE),
        ("/a/detections", DETECTIONS),
        ("/a/image", IMAGE),
        ("/a/views", DETECTIONS),
        ("/a/views/embeddings", IMAGE),
        ("/fused_classes", DETECTIONS),
    )
    wiring = find_cameras(summary)
    assert [each.image for each in wiring.cameras] == ["/a/image"]
    assert [(each.name, each.views) for each in wiring.views] == [("a", "/a/views")]
    assert wiring.missing == ()


@pytest.mark.parametrize(
    ("topics", "reason"),
    [
        ([("/tf", "tf2_msgs/msg/TFMessage")], "nothing to fuse"),
        ([("/a/image", IMAGE)], "no detections: run a detector"),
        ([("/a/tracks", DETECTIONS)], "no sensor_msgs/Image"),
    ],
)
def test_what_is_missing_is_said(topics, reason):
    wiring = find_cameras(bag(*topics))
    assert wiring.cameras == ()
    assert reason in wiring.missing[0]


def test_detections_that_fit_several_cameras_are_asked_about():
    summary = bag(("/a/image", IMAGE), ("/b/image", IMAGE), ("/tracks", DETECTIONS))
    wiring = find_cameras(summary)
    assert wiring.cameras == ()
    assert "--camera NAME=IMAGE,DETECTIONS" in wiring.missing[0]
    named = name_cameras(summary, ["front=/b/image,/tracks"])
    assert [(each.name, each.image) for each in named.cameras] == [("front", "/b/image")]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("front", "expected NAME="),
        ("front=/b/image", "expected NAME="),
        ("front=/x,/tracks", "no topic /x"),
        ("front=/tracks,/tracks", "expected sensor_msgs/msg/Image"),
    ],
)
def test_a_wrongly_named_camera_is_refused(text, reason):
    summary = bag(("/b/image", IMAGE), ("/tracks", DETECTIONS))
    with pytest.raises(BagError, match=reason):
        name_cameras(summary, [text])
