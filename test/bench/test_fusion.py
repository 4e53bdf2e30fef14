"""The benchmark measures the engine that nodes run; no test here looks at how fast anything is."""

from __future__ import annotations

import json

from bench.__main__ import main
from bench.drive import OBJECTS, six_camera_drive
from bench.fusion import measure_fusion
from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.resources import find_model


def test_fusion_is_measured_for_every_length_and_number_of_tracks():
    bundle = load_bundle(find_model("signworld"))
    records = list(measure_fusion(bundle, rounds=2, lengths=(10, 30), tracks=(1, 2)))
    assert [(r["tracks"], r["L"]) for r in records] == [(1, 10), (1, 30), (2, 10), (2, 30)]
    assert all(r["fuser"] == bundle.meta.default_fuser and r["ratio_forward"] > 0 for r in records)
    assert len({r["bytes_per_track"] for r in records}) == 1  # a long track needs no more than a short one


def test_the_records_are_printed_and_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("bench.__main__.measure_fusion", lambda bundle, rounds: iter([{"L": 10, "x": 0.5}]))
    file = tmp_path / "bench.json"
    assert main(["--sections", "fusion", "--road", "signworld", "--json", str(file)]) == 0
    assert json.loads(file.read_text())["fusion"] == [{"L": 10, "x": 0.5}]
    assert "forward pass" in capsys.readouterr().out


def test_an_unknown_model_is_one_sentence(capsys):
    assert main(["--sections", "fusion", "--road", "nowhere"]) == 1
    assert capsys.readouterr().err.startswith("bench: ")


def test_six_cameras_see_twenty_objects_in_every_frame():
    drive = six_camera_drive(duration=4.0)
    assert len(drive.camera_names) == 6
    for step in (0, 39):
        for camera in range(6):
            frame = drive.frame(step, camera)
            assert len(set(frame.ids)) == OBJECTS
            assert (frame.boxes[:, 2:] > 4).all()
