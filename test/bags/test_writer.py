"""Bags this package writes: complete, described, and never half-finished."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
import yaml
from rosbags.rosbag2 import Reader
from rosbags.typesys import get_types_from_msg

from lla_fusion_ros.bags.definitions import VISION_MSGS, fits_vision_msgs, typestore
from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.writer import BagWriter
from lla_fusion_ros.messages.contract import DETECTIONS, LABEL_INFO
from lla_fusion_ros.types.errors import BagError

INTERFACES = Path(__file__).parents[2] / "interfaces" / "vision_msgs" / "msg"
EMPTY = b"\x00\x01\x00\x00" + bytes(16)


def test_type_hashes_are_those_of_stock_ros2():
    assert typestore().hash_rihs01(DETECTIONS) == (
        "RIHS01_214274120007f4a683866481336b70310268cfa107aebe9d594a6acf75bda968"
    )
    assert typestore().hash_rihs01(LABEL_INFO) == (
        "RIHS01_3d37df4015cdf660cc851c51897f2acd957e1ca6205ba0a99aebffb9406b0783"
    )


@pytest.mark.parametrize("name", sorted(VISION_MSGS))
def test_definitions_equal_those_of_the_interface_package(name):
    text = (INTERFACES / f"{name.rpartition('/')[2]}.msg").read_text()
    assert get_types_from_msg(text, name) == get_types_from_msg(VISION_MSGS[name], name)


def test_a_written_bag_tells_stock_tools_all_they_need(tmp_path):
    with BagWriter(tmp_path / "out", about={"fuser": "pool"}) as writer:
        writer.add("/fused_classes", DETECTIONS)
        writer.add("/fused_classes/label_info", LABEL_INFO, latched=True)
        writer.write("/fused_classes", 5, EMPTY)
        writer.write("/fused_classes", 9, EMPTY)
    metadata = yaml.safe_load((tmp_path / "out" / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert metadata["storage_identifier"] == "mcap"
    assert metadata["message_count"] == 2
    assert metadata["duration"]["nanoseconds"] == 4
    assert metadata["custom_data"] == {"written_by": "lla_fusion_ros", "fuser": "pool"}
    with Reader(tmp_path / "out") as reader:
        topics = {each.topic: each for each in reader.connections}
        assert [time for _, time, _ in reader.messages()] == [5, 9]
    assert topics["/fused_classes"].digest == typestore().hash_rihs01(DETECTIONS)
    assert "vision_msgs/Detection2D[] detections" in topics["/fused_classes"].msgdef.data
    with Bag(tmp_path / "out") as bag:
        assert [topic.latched for topic in bag.summary.topics] == [False, True]


def test_a_writer_that_is_interrupted_leaves_a_complete_bag(tmp_path):
    with pytest.raises(KeyboardInterrupt), BagWriter(tmp_path / "out") as writer:
        writer.add("/fused_classes", DETECTIONS)
        writer.write("/fused_classes", 5, EMPTY)
        raise KeyboardInterrupt
    with Bag(tmp_path / "out") as bag:
        assert bag.summary.count == 1
        assert bag.notes == []


def test_nothing_is_overwritten_unless_asked_and_only_bags_then(tmp_path):
    with BagWriter(tmp_path / "out"):
        pass
    with pytest.raises(BagError, match="--overwrite"):
        BagWriter(tmp_path / "out")
    with BagWriter(tmp_path / "out", overwrite=True):
        pass
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    with pytest.raises(BagError, match="is not a bag"):
        BagWriter(tmp_path / "thesis", overwrite=True)
    assert (tmp_path / "thesis" / "chapter.tex").exists()


def test_older_vision_msgs_without_ids_are_told_apart():
    own, _ = typestore().generate_msgdef(DETECTIONS, ros_version=2)
    assert fits_vision_msgs(DETECTIONS, own)
    assert fits_vision_msgs(DETECTIONS, "# a comment\n" + own.replace("float64 w", "float64 w 1"))
    assert not fits_vision_msgs(
        DETECTIONS, own.replace("string id\n", "bool is_tracking\nstring tracking_id\n")
    )
    assert fits_vision_msgs(DETECTIONS, "")


def test_a_full_disk_is_told_in_one_sentence(tmp_path, monkeypatch):
    def no_space(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    writer = BagWriter(tmp_path / "bag")
    with pytest.raises(BagError, match="cannot be written.*No space left"), writer:
        writer.add("/boxes", DETECTIONS)
        monkeypatch.setattr(writer._writer, "write", no_space)
        writer.write("/boxes", 1, b"\0\1\0\0")
