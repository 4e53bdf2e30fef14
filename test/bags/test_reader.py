"""Bags as they are found in the wild: split, compressed, damaged, incomplete."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

from lla_fusion_ros.bags.compression import ZSTD_MAGIC
from lla_fusion_ros.bags.definitions import typestore
from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.types.errors import BagError
from support.processes import REPOSITORY

SHARED = Path(os.environ.get("LLA_FUSION_BAGS") or REPOSITORY.parent / "shared" / "bags")
needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason=f"no foreign bags in {SHARED}; set LLA_FUSION_BAGS"
)
MESSAGES = 40


def record(
    folder: Path,
    storage: StoragePlugin = StoragePlugin.MCAP,
    mode: CompressionMode = CompressionMode.NONE,
    first: int = 0,
    size: int = 100_000,
) -> list[tuple[str, int, bytes]]:
    """Write a bag as `rosbags` does; returns what it holds."""
    writer = Writer(folder, version=8, storage_plugin=storage)
    writer.set_compression(mode, CompressionFormat.ZSTD)
    random = np.random.default_rng(first)
    content = []
    with writer:
        topics = [
            writer.add_connection(name, "sensor_msgs/msg/Image", typestore=typestore())
            for name in ("/left/image", "/right/image")
        ]
        for index in range(first, first + MESSAGES):
            topic = topics[index % 2]
            data = b"\x00\x01\x00\x00" + random.bytes(size if index % 3 else 50)
            writer.write(topic, 1000 + index, data)
            content.append((topic.topic, 1000 + index, data))
    return content


def read(path: Path) -> tuple[list[tuple[str, int, bytes]], list[str]]:
    with Bag(path) as bag:
        return [(message.topic, message.time, message.data) for message in bag.messages()], bag.notes


@pytest.mark.parametrize("storage", list(StoragePlugin))
@pytest.mark.parametrize("mode", list(CompressionMode))
def test_every_storage_and_compression_gives_the_same_messages(tmp_path, storage, mode):
    if storage is StoragePlugin.SQLITE3 and mode is CompressionMode.STORAGE:
        pytest.skip("sqlite3 has no compression of its own")
    content = record(tmp_path / "bag", storage, mode)
    assert read(tmp_path / "bag") == (content, [])


@pytest.mark.parametrize("storage", list(StoragePlugin))
@pytest.mark.parametrize("mode", [CompressionMode.NONE, CompressionMode.FILE, CompressionMode.MESSAGE])
def test_a_bag_without_metadata_is_read_and_the_lack_is_noted(tmp_path, storage, mode):
    content = record(tmp_path / "bag", storage, mode)
    (tmp_path / "bag" / "metadata.yaml").unlink()
    messages, notes = read(tmp_path / "bag")
    assert messages == content
    assert len(notes) == 1 and "metadata.yaml is missing" in notes[0]


def test_splits_come_in_time_order_whatever_their_names(tmp_path):
    late = record(tmp_path / "a", first=MESSAGES)
    early = record(tmp_path / "b")
    shutil.move(tmp_path / "a" / "a.mcap", tmp_path / "b" / "a.mcap")
    (tmp_path / "b" / "metadata.yaml").unlink()
    messages, _ = read(tmp_path / "b")
    assert messages == early + late
    with Bag(tmp_path / "b") as bag:
        assert {topic.name: topic.count for topic in bag.summary.topics} == {
            "/left/image": MESSAGES,
            "/right/image": MESSAGES,
        }


def test_a_split_that_is_gone_is_named_and_the_rest_is_read(tmp_path):
    content = record(tmp_path / "bag")
    text = (tmp_path / "bag" / "metadata.yaml").read_text()
    (tmp_path / "bag" / "metadata.yaml").write_text(
        text.replace("relative_file_paths:\n", "relative_file_paths:\n  - bag_0.mcap\n")
    )
    messages, notes = read(tmp_path / "bag")
    assert messages == content
    assert notes == ["bag_0.mcap is listed in metadata.yaml but missing"]


@pytest.mark.parametrize("mode", [CompressionMode.NONE, CompressionMode.STORAGE])
@pytest.mark.parametrize("share", [0.999, 0.6, 0.3])
def test_a_cut_off_mcap_gives_every_complete_message_before_the_cut(tmp_path, mode, share):
    content = record(tmp_path / "bag", mode=mode)
    file = tmp_path / "bag" / "bag.mcap"
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * share)])
    messages, notes = read(tmp_path / "bag")
    assert messages == content[: len(messages)]
    assert len(messages) >= int(MESSAGES * share) - 6  # a begun chunk gives its beginning
    assert len(notes) == 1 and "is cut off" in notes[0] and "bag.mcap" in notes[0]


def test_a_damaged_chunk_in_the_middle_costs_only_itself(tmp_path):
    content = record(tmp_path / "bag", mode=CompressionMode.STORAGE)
    file = tmp_path / "bag" / "bag.mcap"
    whole = bytearray(file.read_bytes())
    middle = whole.index(ZSTD_MAGIC, len(whole) // 3)  # the second of three chunks
    whole[middle : middle + 4] = bytes(4)
    file.write_bytes(whole)
    messages, notes = read(tmp_path / "bag")
    assert set(messages) < set(content)
    assert messages[0] == content[0] and messages[-1] == content[-1]
    assert len(messages) >= MESSAGES - 20
    assert any("damaged" in note for note in notes)


@pytest.mark.parametrize("share", [0.9, 0.5, 0.2])
def test_a_cut_off_database_gives_every_complete_message(tmp_path, share):
    content = record(tmp_path / "bag", StoragePlugin.SQLITE3)
    file = tmp_path / "bag" / "bag.db3"
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * share)])
    messages, notes = read(tmp_path / "bag")
    assert messages == [each for each in content if each in messages]
    assert len(messages) >= int(MESSAGES * share) - 4
    assert len(notes) == 1 and "is cut off" in notes[0]


def test_messages_still_in_the_write_ahead_log_are_read(tmp_path):
    content = record(tmp_path / "bag", StoragePlugin.SQLITE3, size=1000)
    file = tmp_path / "bag" / "bag.db3"
    recorder = sqlite3.connect(file)
    recorder.execute("PRAGMA journal_mode=WAL")
    late = (1, 5000, b"\x00\x01\x00\x00late")
    recorder.execute("INSERT INTO messages (topic_id, timestamp, data) VALUES (?, ?, ?)", late)
    recorder.commit()
    died = tmp_path / "died"
    shutil.copytree(tmp_path / "bag", died)  # as it lies on disk while the recorder still runs
    recorder.close()
    messages, _ = read(died)
    assert messages == [*content, ("/left/image", 5000, b"\x00\x01\x00\x00late")]


def test_reading_can_start_later_and_keep_to_some_topics(tmp_path):
    content = record(tmp_path / "bag")
    with Bag(tmp_path / "bag") as bag:
        some = [message.time for message in bag.messages(["/left/image"], start=1010)]
    assert some == [time for topic, time, _ in content if topic == "/left/image" and time >= 1010]


def test_what_is_not_a_bag_is_refused_with_a_sentence(tmp_path):
    with pytest.raises(BagError, match="does not exist"):
        Bag(tmp_path / "none")
    with pytest.raises(BagError, match="holds no rosbag2 storage file"):
        Bag(tmp_path)
    (tmp_path / "old.bag").write_bytes(b"#ROSBAG V2.0\n")
    for path in (tmp_path, tmp_path / "old.bag"):
        with pytest.raises(BagError, match="rosbags-convert --src"):
            Bag(path)
    (tmp_path / "text.txt").write_text("hello")
    with pytest.raises(BagError, match="not a rosbag2 file"):
        Bag(tmp_path / "text.txt")


def test_an_empty_or_foreign_storage_file_is_noted_not_raised(tmp_path):
    (tmp_path / "empty.mcap").write_bytes(b"")
    messages, notes = read(tmp_path / "empty.mcap")
    assert messages == []
    assert len(notes) == 1 and "empty.mcap" in notes[0]


@needs_shared
def test_a_bag_with_message_compression_written_by_ros2_is_read():
    with Bag(SHARED / "amber_soccer_goal") as bag:
        sizes = [len(message.data) for message in bag.messages()]
        types = {message.type for message in bag.messages()}
    assert types == {"sensor_msgs/msg/Image"}
    assert len(sizes) == 2 and all(size > 640 * 480 * 3 for size in sizes)


@needs_shared
def test_a_database_without_metadata_written_by_ros2_is_read():
    messages, notes = read(SHARED / "autoware_mot_test_data1")
    assert len(messages) == 271
    assert len(notes) == 1 and "metadata.yaml is missing" in notes[0]


@needs_shared
def test_a_ros1_bag_is_refused_with_the_way_out():
    with pytest.raises(BagError, match="rosbags-convert"):
        Bag(SHARED / "ubiquity_fiducials_ros1")
