"""What `info` says of bags from here and elsewhere."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from replay.scenes import write_scene

from lla_fusion_ros.bags.describe import describe_bag
from lla_fusion_ros.bags.writer import BagWriter
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.contract import DETECTIONS, IMAGE
from lla_fusion_ros.messages.detections import write_detections
from lla_fusion_ros.messages.images import write_image
from support.processes import REPOSITORY

SHARED = Path(os.environ.get("LLA_FUSION_BAGS") or REPOSITORY.parent / "shared" / "bags")
needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason=f"no foreign bags in {SHARED}; set LLA_FUSION_BAGS"
)


def test_cameras_tracks_and_durations_are_told(tmp_path):
    description = describe_bag(write_scene(tmp_path / "drive", frames=11, objects=3))
    assert description.can_be_fused
    assert description.seconds == pytest.approx(1.0)
    assert description.tracks == 3 and description.shared_tracks == 3
    assert [(camera.name, camera.frames, camera.detections) for camera in description.cameras] == [
        ("left", 11, 33),
        ("right", 11, 33),
    ]
    assert json.loads(json.dumps(description.as_dict()))["messages"] == 44


def test_detections_without_ids_can_be_fused_by_the_built_in_tracker(tmp_path):
    header = Header(10**9, "")
    with BagWriter(tmp_path / "untracked") as writer:
        writer.add("/a/image", IMAGE)
        writer.add("/a/detections", DETECTIONS)
        writer.write("/a/image", 10**9, write_image(header, np.zeros((8, 8, 3), np.uint8), "rgb8"))
        writer.write("/a/detections", 10**9, write_detections(header, [""], np.full((1, 5), 4.0)))
    description = describe_bag(tmp_path / "untracked")
    assert description.can_be_fused and not description.missing
    (camera,) = description.cameras
    assert (camera.without_id, camera.tracks) == (1, 1)
    assert camera.chosen == f"{DETECTIONS}, ids of the built-in tracker, an id is an object of this camera"


@needs_shared
def test_a_foreign_bag_of_images_lacks_detections():
    description = describe_bag(SHARED / "amber_soccer_goal")
    assert not description.can_be_fused
    assert "Detection2DArray" in description.missing[0]


@needs_shared
def test_a_foreign_bag_of_unknown_types_is_described_and_has_nothing_to_fuse():
    description = describe_bag(SHARED / "autoware_mot_test_data1")
    assert not description.can_be_fused
    assert "nothing to fuse" in description.missing[0]
    types = {kind for _, kind, _ in description.topics}
    assert "autoware_perception_msgs/msg/DetectedObjects" in types
