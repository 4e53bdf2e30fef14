"""Bags made from tracks and drives: what goes in comes out, and the truth file tells it."""

from __future__ import annotations

import numpy as np
import pytest

from lla_fusion_ros.bags.describe import describe_bag
from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.images.crops import cut_crops
from lla_fusion_ros.lab.makebag.paste import PasteSettings, paste_frames
from lla_fusion_ros.lab.makebag.write import drive_frames, make_bag
from lla_fusion_ros.messages.detections import parse_detections
from lla_fusion_ros.messages.images import parse_compressed_image
from lla_fusion_ros.report.truth import read_truth
from lla_fusion_ros.signworld import Drive, DriveSettings
from lla_fusion_ros.types.errors import BagError, InputError
from lla_fusion_ros.types.track_set import Frame, Track, TrackSet

RANDOM = np.random.default_rng(0)


def track(name: str, label: int, length: int, cameras: int = 1) -> Track:
    frames = tuple(
        Frame(
            RANDOM.integers(0, 256, (32, 36, 3), np.uint8),
            (4.0, 3.0, 30.0, 28.0),
            index % cameras,
            index / 30,
        )
        for index in range(length)
    )
    return Track(name, label, frames)


TRACKS = TrackSet("toy", ("stop", "yield"), tuple(track(f"t{i}", i % 3 - 1, 5 + i) for i in range(5)), "")


def made_of(folder, trackset=TRACKS, **settings):
    frames = paste_frames(trackset, PasteSettings(**settings))
    return make_bag(frames, folder / trackset.name, trackset.name, trackset.class_names)


def views(path) -> dict[str, list[tuple[str, np.ndarray, np.ndarray]]]:
    """Camera, image and box of every view, by track id."""
    found: dict[str, list] = {}
    with Bag(path) as bag:
        images = {}
        for message in bag.messages():
            camera = message.topic.split("/")[1]
            if message.topic.endswith("compressed"):
                image = parse_compressed_image(message.data)
                images[camera, image.header.stamp] = image.pixels()
            else:
                detections = parse_detections(message.data)
                for name, box in zip(detections.ids, detections.boxes, strict=True):
                    found.setdefault(name, []).append((camera, images[camera, detections.header.stamp], box))
    return found


def test_every_image_of_every_track_is_shown_once_and_the_truth_file_names_them(tmp_path):
    for cameras in (1, 2):
        made = made_of(tmp_path / str(cameras), cameras=cameras, objects=2)
        shown = views(made.bag)
        assert {name: len(seen) for name, seen in shown.items()} == {f"t{i}": 5 + i for i in range(5)}
        assert made.views == 35 and made.tracks == 5
        assert made.cameras == tuple(f"camera_{index}" for index in range(cameras))
    truth = read_truth(made.truth)
    assert truth.class_names == TRACKS.class_names
    names = {each.object: each.class_name for frame in truth.frames.values() for each in frame.shown}
    boxes = {
        (camera, each.object, box)
        for (camera, _), frame in truth.frames.items()
        for box, each in zip(frame.boxes, frame.shown, strict=True)
    }
    seen = {(camera, name, tuple(box)) for name, own in shown.items() for camera, _, box in own}
    assert {(*own, tuple(np.round(box, 3))) for *own, box in seen} == boxes
    assert names == {"t0": None, "t1": "stop", "t2": "yield", "t3": None, "t4": "stop"}
    with pytest.raises(BagError, match="exists already"):
        made_of(tmp_path / "2")


def test_a_crop_of_the_bag_is_the_crop_of_the_data_set(tmp_path):
    shown = views(made_of(tmp_path).bag)
    for each in TRACKS.tracks:
        for frame, (_, pixels, box) in zip(each.frames, shown[each.id], strict=True):
            crop = cut_crops(pixels, box[None], 26, 0.0)[0]
            x0, y0, x1, y1 = map(int, frame.box)
            own = frame.image[y0:y1, x0:x1]
            np.testing.assert_allclose(crop.mean(axis=(0, 1)), own.mean(axis=(0, 1)), atol=3)


def test_cameras_of_the_data_set_are_kept_apart(tmp_path):
    made = made_of(tmp_path, TrackSet("van", ("stop",), (track("sign", 0, 9, cameras=3),), ""), cameras=3)
    assert [camera for camera, _, _ in views(made.bag)["sign"]] == ["camera_0", "camera_1", "camera_2"] * 3


def test_a_drive_becomes_a_bag_that_can_be_fused(tmp_path):
    drive = Drive(DriveSettings(duration=1.0, rate=5.0))
    made = make_bag(drive_frames(drive), tmp_path / "drive", "signworld", (), "jpeg")
    description = describe_bag(made.bag)
    assert description.can_be_fused and not description.missing
    assert {camera.name for camera in description.cameras} == {"left", "right"}
    assert description.tracks == made.tracks
    assert sum(camera.detections for camera in description.cameras) == made.views


def test_an_interrupted_maker_leaves_a_bag_and_its_truth(tmp_path):
    def impatient():
        for index, frame in enumerate(paste_frames(TRACKS, PasteSettings())):
            if index == 3:
                raise KeyboardInterrupt
            yield frame

    with pytest.raises(KeyboardInterrupt):
        make_bag(impatient(), tmp_path / "toy", "toy", TRACKS.class_names)
    assert describe_bag(tmp_path / "toy").cameras[0].frames == 3
    assert len(read_truth(tmp_path / "toy.truth.json").frames) == 3


@pytest.mark.parametrize("values", [{"cameras": 0}, {"objects": 0}, {"rate": 0}, {"width": 1}])
def test_impossible_settings_are_refused(values):
    with pytest.raises(InputError, match=next(iter(values))):
        PasteSettings(**values)
