"""Bags of every type of detections: found, described, and replayed with the numbers of the live object."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from detections.samples import SAMPLES, filled, store, write
from rosbags.rosbag2 import StoragePlugin, Writer

from lla_fusion_ros.bags.describe import describe_bag
from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import find_cameras
from lla_fusion_ros.bags.writer import BagWriter
from lla_fusion_ros.detections import adapter_for
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.contract import COMPRESSED_IMAGE, IMAGE
from lla_fusion_ros.messages.images import write_compressed_image, write_image
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.replay.replay import ReplayOptions, replay
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.stream.stream_settings import CameraWiring
from lla_fusion_ros.types.errors import BagError
from support.tiny_bundle import tiny_bundle

SECOND = 1_000_000_000
READ = [sample for sample in SAMPLES if not adapter_for(sample[0]).in_space]


def full(type_name: str) -> str:
    return type_name.replace("/", "/msg/")


def write_bag(path, type_name, values, frames=4):
    """Two cameras that see the sample's object in a standing image."""
    types = store(type_name)
    picture = np.random.default_rng(0).integers(0, 255, (480, 640, 3), np.uint8)
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as bag:
        for camera in ("left", "right"):
            image = bag.add_connection(f"/{camera}/image", IMAGE, typestore=types)
            boxes = bag.add_connection(f"/{camera}/boxes", full(type_name), typestore=types)
            for frame in range(frames):
                stamp = 1000 * SECOND + frame * SECOND // 10
                head = {"header.stamp.sec": stamp // SECOND, "header.stamp.nanosec": stamp % SECOND}
                bag.write(image, stamp, write_image(Header(stamp, camera), picture, "rgb8"))
                bag.write(boxes, stamp, write(type_name, {**head, **filled(types, values)}))


class Kept:
    def __init__(self):
        self.frames = []

    def take(self, time, fused):
        self.frames.append(fused)


@pytest.mark.parametrize(("type_name", "values", "ids", "scope"), [sample[:4] for sample in READ])
def test_a_bag_of_each_type_gives_what_the_live_object_gives(tmp_path, type_name, values, ids, scope):
    path, bundle, kept = tmp_path / "drive", tiny_bundle(), Kept()
    write_bag(path, type_name, values)
    wiring = {camera: CameraWiring(full(type_name)) for camera in ("left", "right")}
    live = Perception(bundle, Classifier(bundle, "cpu", "auto"), ["left", "right"], wiring=wiring)
    expected = []
    with Bag(path) as bag:
        replay(bag, find_cameras(bag.summary), bundle, ReplayOptions(), [kept])
        for message in bag.messages():
            camera, topic = message.topic.strip("/").split("/")
            topic = "detections" if topic == "boxes" else topic
            live.offer(camera, topic, message.data, message.time)
            expected += live.step()
    assert len(kept.frames) == len(expected) == 8
    for fused, other in zip(kept.frames, expected, strict=True):
        own = "1" if ids is None else ids[0]
        assert (
            fused.result.ids == other.result.ids == (own if scope == "global" else f"{fused.camera}/{own}",)
        )
        np.testing.assert_allclose(fused.result.pmf, other.result.pmf, atol=1e-5)
    description = describe_bag(path)
    assert description.can_be_fused and not description.missing
    source = "built-in tracker" if ids is None else "messages"
    assert all(f"{full(type_name)}, ids of the {source}" in camera.chosen for camera in description.cameras)


def test_boxes_in_space_cannot_be_fused_without_geometry(tmp_path):
    (sample,) = [sample for sample in SAMPLES if sample not in READ]
    write_bag(tmp_path / "drive", *sample[:2], frames=1)
    description = describe_bag(tmp_path / "drive")
    assert not description.can_be_fused
    assert any("is in space, and no camera_info of" in sentence for sentence in description.missing)


def test_a_camera_that_the_bag_has_not_cannot_be_wired(tmp_path):
    write_bag(tmp_path / "drive", *READ[0][:2], frames=1)
    options = ReplayOptions(wiring={"front": CameraWiring()})
    with (
        Bag(tmp_path / "drive") as bag,
        pytest.raises(BagError, match="no camera 'front'; the bag has left, right"),
    ):
        replay(bag, find_cameras(bag.summary), tiny_bundle(), options, [])


@pytest.mark.parametrize("compressed", [False, True])
def test_a_bag_of_crops_is_fused_without_images_and_boxes(tmp_path, compressed):
    random, kept = np.random.default_rng(0), Kept()
    suffix, kind = ("/compressed", COMPRESSED_IMAGE) if compressed else ("", IMAGE)
    with BagWriter(tmp_path / "crops") as writer:
        writer.add(f"/left/crops{suffix}", kind)
        for frame in range(3):
            for track in ("a", "b"):
                header = Header(1000 * SECOND + frame * SECOND // 10, track)
                picture = random.integers(0, 255, (20, 30, 3), np.uint8)
                png = cv2.imencode(".png", picture)[1].tobytes()
                data = (
                    write_compressed_image(header, png, "png")
                    if compressed
                    else write_image(header, picture, "bgr8")
                )
                writer.write(f"/left/crops{suffix}", header.stamp, data)
    description = describe_bag(tmp_path / "crops")
    assert description.can_be_fused and not description.missing
    assert description.cameras[0].chosen.startswith(f"{kind}, crops, ids of the messages")
    with Bag(tmp_path / "crops") as bag:
        replay(bag, find_cameras(bag.summary), tiny_bundle(), ReplayOptions(), [kept])
    assert [fused.result.ids for fused in kept.frames] == [("left/a", "left/b")] * 3
    assert kept.frames[-1].result.verdicts[0].views == {"left": 3}
