"""Recordings for Rerun, read back with Rerun's own reader."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import cv2
import numpy as np
import pytest
from replay.scenes import START, STEP, write_scene
from watch.test_scene import NASTY

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.writer import BagWriter
from lla_fusion_ros.bundle import save_bundle
from lla_fusion_ros.cli.main import main
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.contract import CAMERA_INFO, STATIC_TRANSFORMS, TRANSFORMS_TYPE
from lla_fusion_ros.messages.geometry import CameraInfoMessage, Transform, write_camera_info, write_transforms
from support.rerun import Recording
from support.tiny_bundle import tiny_bundle

LENS = (100.0, 0.0, 80.0, 0.0, 100.0, 60.0, 0.0, 0.0, 1.0)


@pytest.fixture
def inside(tmp_path, monkeypatch) -> Iterator:
    save_bundle(tiny_bundle(), tmp_path / "tiny.safetensors")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def replayed(drive: str, *words: str) -> int:
    return main(["replay", drive, "--bundle", "tiny.safetensors", "--no-bag", "--no-report", *words])


def test_a_replay_writes_images_boxes_with_names_pmfs_and_warnings(inside):
    write_scene(inside / "drive", frames=4)
    table = inside / "drive_fused" / "fused.csv"
    assert replayed("drive", "--rerun", "drive.rrd", "--set", "identity=global") == 0
    rows = [line.split(",") for line in table.read_text().splitlines()]
    column = {name: at for at, name in enumerate(rows[0])}
    recording = Recording(inside / "drive.rrd")
    for camera in ("left", "right"):
        images = recording.column(f"/cameras/{camera}/image", "EncodedImage:blob")
        assert [cv2.imdecode(np.asarray(blob[0], np.uint8), 1).shape for blob in images] == [
            (120, 160, 3)
        ] * 4
    for name in ("track 0", "track 1", "track 2"):
        own = [row for row in rows if row[column["track"]] == name]
        part = name.replace(" ", "\\ ")
        pmfs = np.array(recording.column(f"/pmf/{part}", "Scalars:scalars"))
        assert pmfs.shape == (8, 4) and np.allclose(pmfs.sum(axis=1), 1)
        assert np.allclose(pmfs.max(axis=1), [float(row[column["fused_p"]]) for row in own], atol=1e-6)
        entropy = np.ravel(recording.column(f"/entropy/{part}", "Scalars:scalars"))
        assert np.allclose(entropy, [float(row[column["entropy"]]) for row in own], atol=1e-5)
        assert recording.column(f"/pmf/{part}", "SeriesLines:names") == [[f"class {i}" for i in range(4)]]
    assert recording.times("/pmf/track\\ 0") == sorted([START + i * STEP for i in range(4)] * 2)
    labels = recording.column("/cameras/left/image/objects", "Boxes2D:labels")
    assert len(labels) == 4 and all(
        label.startswith(f"track {at}: class ") for at, label in enumerate(labels[0])
    )
    sizes = recording.column("/cameras/left/image/objects", "Boxes2D:half_sizes")
    assert np.allclose(sizes[0], 8)
    warned = [row for row in rows[1:] if row[column["reasons"]]]
    told = recording.column("/warnings", "TextLog:text") if warned else []
    assert len([text for text in told if "no longer" not in text[0]]) == len(warned)
    assert recording.blueprints == 1


def test_cameras_stand_in_space_where_their_place_is_known(inside):
    write_scene(inside / "flat", frames=2)
    with Bag(inside / "flat") as bag, BagWriter(inside / "drive") as writer:
        for camera in ("left", "right"):
            writer.add(f"/{camera}/camera_info", CAMERA_INFO)
            info = CameraInfoMessage(
                Header(START, f"{camera}_optical"), 160, 120, "plumb_bob", (), LENS, (0.0,) * 12
            )
            writer.write(f"/{camera}/camera_info", START - 2, write_camera_info(info))
        writer.add(STATIC_TRANSFORMS, TRANSFORMS_TYPE, True)
        turn = (0.0, 0.0, 0.0, 1.0)
        moves = [
            Transform(Header(0, "base"), "left_optical", (0.0, 0.0, 0.0), turn),
            Transform(Header(0, "base"), "right_optical", (0.4, 0.0, 0.0), turn),
        ]
        writer.write(STATIC_TRANSFORMS, START - 1, write_transforms(moves))
        for message in bag.messages():
            writer.add(message.topic, message.type)
            writer.write(message.topic, message.time, message.data)
    assert replayed("drive", "--rerun", "drive.rrd") == 0
    recording = Recording(inside / "drive.rrd")
    places = [
        np.ravel(recording.column(f"/cameras/{camera}", "Transform3D:translation"))
        for camera in ("left", "right")
    ]
    assert np.allclose(places[1] - places[0], (0.4, 0, 0))
    matrix = recording.column("/cameras/right/image", "Pinhole:image_from_camera")
    assert np.allclose(np.reshape(matrix[0], (3, 3)).T, np.reshape(LENS, (3, 3)))


def test_any_id_is_a_name_and_nothing_more(inside):
    write_scene(inside / "drive", frames=2, cameras=("left",), ids=NASTY[1:])
    assert replayed("drive", "--rerun", "drive.rrd", "--set", "identity=global") == 0
    recording = Recording(inside / "drive.rrd")
    (labels, _) = recording.column("/cameras/left/image/objects", "Boxes2D:labels")
    assert len(labels) == len(NASTY) - 1 and all(text.isprintable() for text in labels)
    objects = [path for path in recording.paths if path.startswith("/pmf/")]
    assert len(objects) == len(NASTY) - 1 and all(path.isprintable() for path in objects)


def test_earlier_recordings_stay_unless_told_and_a_failure_leaves_nothing(inside, capsys, monkeypatch):
    write_scene(inside / "drive", frames=2)
    (inside / "drive.rrd").write_text("old")
    assert replayed("drive", "--rerun", "drive.rrd") == 1
    assert "--overwrite" in capsys.readouterr().err
    assert replayed("drive", "--rerun", "drive.rrd", "--overwrite", "--start", "99") == 1
    assert (inside / "drive.rrd").read_text() == "old" and not list(inside.glob(".*.part"))
    assert replayed("drive", "--rerun", "nowhere/drive.rrd") == 1
    assert "does not exist" in capsys.readouterr().err
    assert replayed("drive", "--rerun", "many.rrd", "--workers", "1") == 1
    assert "one bag" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "rerun", None)
    monkeypatch.delitem(sys.modules, "lla_fusion_ros.watch.rerun_log", raising=False)
    assert replayed("drive", "--rerun", "new.rrd") == 1
    assert 'pip install "lla_fusion_ros[watch]"' in capsys.readouterr().err
