"""Bags that tell where the cameras are: joined, carried into the fused bag, named by objects in space."""

from __future__ import annotations

from dataclasses import replace

import pytest
from detections.samples import store
from rosbags.rosbag2 import StoragePlugin, Writer

from lla_fusion_ros.bags.definitions import typestore
from lla_fusion_ros.bags.describe import describe_bag
from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import find_cameras, name_cameras
from lla_fusion_ros.bundle.bundle import load_bundle, save_bundle
from lla_fusion_ros.lab.makebag.write import drive_frames, make_bag
from lla_fusion_ros.messages.contract import OBJECTS, STATIC_TRANSFORMS
from lla_fusion_ros.messages.detections import parse_detections
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.replay.output_folder import Wanted, replay_to_folder
from lla_fusion_ros.replay.replay import ReplayOptions
from lla_fusion_ros.signworld import CLASS_NAMES, Drive, DriveSettings
from lla_fusion_ros.signworld.geometry import rig_of
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.errors import BagError
from support.objects_in_space import boxes_in_space
from support.tiny_bundle import tiny_bundle

DRIVE = Drive(DriveSettings(seed=3, duration=2.0))
ONLY_BAG = Wanted(table=False, report=False)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Two cameras without ids, and where they are."""
    place = tmp_path_factory.mktemp("geometry") / "drive"
    frames = drive_frames(DRIVE)
    make_bag(frames, place, "signworld", tuple(CLASS_NAMES), "jpeg", with_ids=False, rig=rig_of(DRIVE))
    return place


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    path = tmp_path_factory.mktemp("bundle") / "tiny.safetensors"
    save_bundle(tiny_bundle(), path)
    return load_bundle(path)


def with_objects(recorded, place, topics=("/lidar/objects",), things=DRIVE.objects[:3]):
    """The same bag with objects in space beside the boxes."""
    types = typestore()
    types.register(store("vision_msgs/Detection3DArray").fielddefs)
    with Bag(recorded) as bag, Writer(place, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        kinds = {**{topic.name: topic.type for topic in bag.summary.topics}, **dict.fromkeys(topics, OBJECTS)}
        lines = {name: writer.add_connection(name, kind, typestore=types) for name, kind in kinds.items()}
        for message in bag.messages():
            if message.topic.endswith("/image/compressed"):
                for topic in topics:
                    writer.write(lines[topic], message.time, boxes_in_space(message.time, "odom", things))
            writer.write(lines[message.topic], message.time, message.data)
    return place


def fused(folder):
    """Camera and ids of every message of /fused_classes, in order."""
    with Bag(folder / "fused") as bag:
        found = [parse_detections(each.data) for each in bag.messages(["/fused_classes"])]
    return [(each.header.frame_id.partition("_")[0], each.ids) for each in found]


def shared(told) -> set[str]:
    by = [{name for own, ids in told if own == camera for name in ids} for camera in ("left", "right")]
    return by[0] & by[1]


def test_a_fused_bag_tells_where_the_cameras_are_and_is_joined_again(tmp_path, recorded, bundle) -> None:
    replay_to_folder(recorded, bundle, tmp_path / "once", ReplayOptions(), ONLY_BAG)
    assert shared(fused(tmp_path / "once"))
    with Bag(recorded) as source, Bag(tmp_path / "once" / "fused") as bag:
        counts = {topic.name: topic for topic in bag.summary.topics}
        for topic in ("/tf", STATIC_TRANSFORMS, "/left/camera_info", "/right/camera_info"):
            assert [each.data for each in bag.messages([topic])] == [
                each.data for each in source.messages([topic])
            ]
        assert counts[STATIC_TRANSFORMS].latched
        times = [message.time for message in bag.messages()]
        assert times == sorted(times)
    replay_to_folder(tmp_path / "once" / "fused", bundle, tmp_path / "twice", ReplayOptions(), ONLY_BAG)
    assert fused(tmp_path / "twice") == fused(tmp_path / "once")


def test_a_replay_that_skips_the_beginning_still_knows_where_the_cameras_are(
    tmp_path, recorded, bundle
) -> None:
    replay_to_folder(recorded, bundle, tmp_path / "late", ReplayOptions(start=0.5), ONLY_BAG)
    told = fused(tmp_path / "late")
    assert len(told) == 30 and shared(told)


def test_objects_of_a_bag_name_the_boxes_as_they_do_live(tmp_path, recorded, bundle) -> None:
    path = with_objects(recorded, tmp_path / "drive")
    replay_to_folder(path, bundle, tmp_path / "out", ReplayOptions(), ONLY_BAG)
    told = fused(tmp_path / "out")
    assert {name for name in shared(told) if name.startswith("object ")}
    live, expected = Perception(bundle, Classifier(bundle, "cpu", "auto"), ["left", "right"]), []
    with Bag(path) as bag:
        for message in bag.messages():
            camera, _, topic = message.topic.strip("/").partition("/")
            if message.topic in ("/tf", STATIC_TRANSFORMS):
                live.offer_transforms(message.topic, message.data)
            elif message.type == OBJECTS:
                live.offer_objects(message.data)
            else:
                live.offer(camera, topic, message.data, message.time)
            expected += [(each.camera, each.result.ids) for each in live.step()]
    assert told == expected
    description = describe_bag(path)
    assert description.can_be_fused and not description.missing
    assert any("/lidar/objects" in note for note in description.notes)


def test_which_objects_are_meant_has_to_be_said_where_a_bag_has_two(tmp_path, recorded, bundle) -> None:
    path = with_objects(recorded, tmp_path / "drive", ("/lidar/objects", "/radar/objects"))
    with Bag(path) as bag:
        wiring = find_cameras(bag.summary)
        assert not wiring.objects and "--set objects_topic=NAME" in wiring.missing[0]
        assert {camera.detections for camera in wiring.cameras} == {"/left/detections", "/right/detections"}
        assert find_cameras(bag.summary, objects="/radar/objects").objects == "/radar/objects"
        named = ["a=/left/image/compressed,/left/detections"]
        assert name_cameras(bag.summary, named, objects="/radar/objects").objects == "/radar/objects"
    options = ReplayOptions(stream=StreamSettings(objects_topic="/sonar"))
    with pytest.raises(BagError, match="objects_topic /sonar: the bag has /lidar/objects, /radar/objects"):
        replay_to_folder(path, bundle, tmp_path / "out", options, ONLY_BAG)
    options = replace(options, stream=StreamSettings(objects_topic="/radar/objects"))
    replay_to_folder(path, bundle, tmp_path / "out", options, ONLY_BAG)
    assert any(name.startswith("object ") for name in shared(fused(tmp_path / "out")))
