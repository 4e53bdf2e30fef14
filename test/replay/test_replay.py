"""A replay is the live stages fed from a file."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from replay.scenes import STEP, write_scene

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import find_cameras
from lla_fusion_ros.bags.writer import BagWriter
from lla_fusion_ros.bundle import load_bundle, save_bundle
from lla_fusion_ros.messages.detections import parse_detections
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.replay.replay import ReplayOptions, replay
from lla_fusion_ros.replay.sinks import CSV_COLUMNS, BagSink, CsvSink
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.errors import BagError
from lla_fusion_ros.types.settings import FusionSettings
from support.tiny_bundle import tiny_bundle


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    path = tmp_path_factory.mktemp("bundle") / "tiny.safetensors"
    save_bundle(tiny_bundle(), path)
    return load_bundle(path)


class Kept:
    """A sink that keeps everything."""

    def __init__(self):
        self.frames = []

    def take(self, time, fused):
        self.frames.append((time, fused))


def run(path, bundle, sinks=(), **options):
    kept = Kept()
    with Bag(path) as bag:
        result = replay(bag, find_cameras(bag.summary), bundle, ReplayOptions(**options), [kept, *sinks])
    return kept.frames, result


def live(path, bundle):
    """The same bag through the object the node runs, one message at a time."""
    perception = Perception(bundle, Classifier(bundle, "cpu", "auto"), ["left", "right"])
    fused = []
    with Bag(path) as bag:
        for message in bag.messages():
            camera, topic = message.topic.strip("/").split("/", 1)
            perception.offer(camera, topic, message.data, message.time)
            fused += perception.step()
    return fused


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("late", [-STEP // 5, 0, 3 * STEP // 2])
def test_a_replay_gives_what_the_live_object_gives_in_the_same_order(tmp_path, bundle, compressed, late):
    path = write_scene(tmp_path / "drive", compressed=compressed, detections_late_by=late)
    frames, result = run(path, bundle)
    expected = live(path, bundle)
    assert [(fused.frame.camera, fused.frame.header.stamp) for _, fused in frames] == [
        (fused.frame.camera, fused.frame.header.stamp) for fused in expected
    ]
    for (_, fused), other in zip(frames, expected, strict=True):
        assert fused.result.ids == other.result.ids
        np.testing.assert_allclose(fused.result.pmf, other.result.pmf, atol=1e-5)
    assert result.frames == 24 and result.views == 72 and not result.interrupted


def test_detections_recorded_with_the_stamps_of_later_images_are_fused_with_none(tmp_path, bundle):
    late, stamped = STEP // 4, 2 * STEP
    path = write_scene(tmp_path / "drive", detections_late_by=late, detections_stamped=stamped)
    frames, result = run(path, bundle)
    assert frames == live(path, bundle) == []
    assert result.counts["dropped_detections_before_image"] == 2 * 10
    assert result.counts["dropped_detections_without_image"] == 2 * 2
    assert result.counts["images_without_detections"] == 2 * 12
    assert set(result.hints) == {"left", "right"} and "left.time_offset" in result.hints["left"]


def test_the_fused_bag_holds_every_frame_and_can_be_fused_again_without_images(tmp_path, bundle):
    path = write_scene(tmp_path / "drive")
    with BagWriter(tmp_path / "fused") as writer:
        first, _ = run(path, bundle, [BagSink(writer, bundle, views=True)])
    with Bag(tmp_path / "fused") as bag:
        counts = {topic.name: topic.count for topic in bag.summary.topics}
        listed = [
            parse_detections(message.data, with_scores=True) for message in bag.messages(["/fused_classes"])
        ]
    assert counts["/fused_classes"] == 24
    assert counts["/left/views"] == counts["/left/views/embeddings"] == 12
    assert counts["/left/views/info"] == counts["/fused_classes/label_info"] == 1
    for array in listed:
        for scores in array.scores:
            assert len(scores) == bundle.classes
            assert sum(score for _, score in scores) == pytest.approx(1.0, abs=1e-6)
    again, result = run(tmp_path / "fused", bundle)
    assert result.used == "views"
    for (_, fused), (_, other) in zip(first, again, strict=True):
        assert fused.result.ids == other.result.ids
        np.testing.assert_allclose(fused.result.pmf, other.result.pmf, atol=1e-5)


def test_frames_without_objects_pass_through_the_bag(tmp_path, bundle):
    path = write_scene(tmp_path / "empty_road", objects=0)
    with BagWriter(tmp_path / "fused") as writer:
        frames, result = run(path, bundle, [BagSink(writer, bundle, views=True)])
    assert len(frames) == 24 and result.views == 0
    again, _ = run(tmp_path / "fused", bundle)
    assert [fused.result.ids for _, fused in again] == [()] * 24


def test_views_can_be_fused_again_with_another_fuser(tmp_path, bundle):
    path = write_scene(tmp_path / "drive")
    with BagWriter(tmp_path / "fused") as writer:
        run(path, bundle, [BagSink(writer, bundle, views=True)])
    direct, _ = run(path, bundle, fusion=FusionSettings(fuser="last"))
    again, _ = run(tmp_path / "fused", bundle, fusion=FusionSettings(fuser="last"))
    np.testing.assert_allclose(direct[-1][1].result.pmf, again[-1][1].result.pmf, atol=1e-5)


def test_views_of_another_bundle_are_refused(tmp_path, bundle):
    path = write_scene(tmp_path / "drive")
    with BagWriter(tmp_path / "fused") as writer:
        run(path, bundle, [BagSink(writer, bundle, views=True)])
    save_bundle(tiny_bundle(seed=7), tmp_path / "other.safetensors")
    with pytest.raises(BagError, match="come from the bundle"):
        run(tmp_path / "fused", load_bundle(tmp_path / "other.safetensors"))


def test_the_table_has_one_row_per_track_and_frame(tmp_path, bundle):
    path = write_scene(tmp_path / "drive")
    with CsvSink(tmp_path / "fused.csv", bundle.class_names) as sink:
        run(path, bundle, [sink], stream=StreamSettings(identity="global"))
    rows = list(csv.DictReader((tmp_path / "fused.csv").open()))
    assert tuple(rows[0]) == CSV_COLUMNS
    assert len(rows) == 72
    assert len({(row["stamp"], row["camera"], row["track"]) for row in rows}) == 72
    assert rows[-1]["views"] == "24" and rows[0]["fused_class"] in bundle.class_names


def test_damaged_messages_are_counted_and_the_rest_is_fused(tmp_path, bundle):
    path = write_scene(tmp_path / "drive", frames=6)
    with Bag(path) as bag:
        messages = list(bag.messages())
        types = {topic.name: topic.type for topic in bag.summary.topics}
    with BagWriter(tmp_path / "damaged") as writer:
        for index, message in enumerate(messages):
            writer.add(message.topic, types[message.topic])
            data = message.data[: len(message.data) // 2] if index == 5 else message.data
            writer.write(message.topic, message.time, data)
    frames, result = run(tmp_path / "damaged", bundle)
    assert len(frames) == 11
    assert result.counts["dropped_bad_message"] == 1


def test_a_bag_that_cannot_be_fused_says_what_is_missing(tmp_path, bundle):
    with BagWriter(tmp_path / "empty"):
        pass
    with pytest.raises(BagError, match="nothing to fuse"):
        run(tmp_path / "empty", bundle)


def test_an_interrupted_replay_keeps_what_it_has(tmp_path, bundle):
    path = write_scene(tmp_path / "drive", frames=40)

    class Impatient:
        def take(self, time, fused):
            if fused.frame.header.stamp >= 1_000_000_000_000 + 20 * STEP:
                raise KeyboardInterrupt

    with BagWriter(tmp_path / "fused") as writer:
        _, result = run(path, bundle, [BagSink(writer, bundle, views=False), Impatient()])
    assert result.interrupted
    with Bag(tmp_path / "fused") as bag:
        assert bag.notes == []
        assert bag.summary.count >= 40


def test_replay_does_not_write_beside_its_input(tmp_path, bundle):
    path = write_scene(tmp_path / "drive", frames=2)
    before = sorted(Path(path).iterdir())
    run(path, bundle)
    assert sorted(Path(path).iterdir()) == before
