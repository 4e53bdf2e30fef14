"""A verb that refuses touches nothing: neither what stands in its way, nor anything beside it."""

import json

import pytest
from replay.scenes import write_scene

from lla_fusion_ros.bundle import save_bundle
from lla_fusion_ros.bundle.score_bundle import score_bundle
from lla_fusion_ros.cli.main import main
from lla_fusion_ros.lab.importing.export import exported
from support.tiny_bundle import tiny_bundle

TRUTH = "precious"


@pytest.fixture
def inside(tmp_path, monkeypatch):
    """A folder with a model, a bag and its truth, and files and folders where outputs are asked for."""
    monkeypatch.chdir(tmp_path)
    save_bundle(tiny_bundle(), tmp_path / "tiny.safetensors")
    save_bundle(score_bundle(("car", "bus")), tmp_path / "detector.safetensors")
    save_bundle(exported(tiny_bundle()), tmp_path / "graphs.safetensors")
    write_scene(tmp_path / "drive", frames=2)
    (tmp_path / "drive.truth.json").write_text(TRUTH)
    (tmp_path / "alone.truth.json").write_text(TRUTH)
    (tmp_path / "file").write_text(TRUTH)
    (tmp_path / "notes" / "drive").mkdir(parents=True)
    (tmp_path / "notes" / "drive" / "diary.txt").write_text(TRUTH)
    (tmp_path / "notes" / "logs").mkdir()
    (tmp_path / "figures.json").mkdir()
    (tmp_path / "notes" / "logs" / "diary.txt").write_text(TRUTH)
    return tmp_path


def everything(folder):
    return {path: path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


DRIVE = ["make-bag", "--drive", "--duration", "1", "--out"]
SIGNWORLD = ["--dataset", "signworld", "--option", "tracks=34"]
TRAIN = ["train", *SIGNWORLD, "--epochs", "1", "--out"]
EVALUATE = ["evaluate", "tiny.safetensors", *SIGNWORLD]
REPLAY = ["replay", "drive", "--bundle", "tiny.safetensors"]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([*DRIVE, "drive"], "'drive' exists already"),
        ([*DRIVE, "alone"], "'alone.truth.json' exists already"),
        ([*DRIVE, "notes", "--overwrite"], "'notes' is not a bag"),
        ([*DRIVE, "file", "--overwrite"], "'file' is not a bag"),
        ([*DRIVE, "file/bag"], "file' is a file"),
        ([*TRAIN, "notes"], "'notes' is a folder"),
        ([*TRAIN, "nowhere/x.safetensors"], "nowhere' of --out does not exist"),
        ([*TRAIN, "x.safetensors", "--checkpoints", "file"], "--checkpoints 'file'"),
        ([*EVALUATE, "--json", "figures.json"], "--json 'figures.json' is a folder"),
        ([*EVALUATE, "--plots", "file"], "--plots 'file'"),
        ([*REPLAY, "--out", "file"], "--out 'file'"),
        ([*REPLAY, "--truth", "drive.truth.json"], "not JSON"),
        ([*REPLAY, "--device", "nonsense"], "nonsense"),
        ([*REPLAY, "--fuser", "nonsense"], "nonsense"),
        (["evaluate", "detector.safetensors", *SIGNWORLD], "has no networks"),
        (["calibrate", "detector.safetensors", *SIGNWORLD, "--out", "x.safetensors"], "has no networks"),
        (["export", "detector.safetensors", "--out", "x.safetensors"], "has no networks"),
        ([*TRAIN, "x.safetensors", "--start", "detector.safetensors"], "has no networks"),
        ([*TRAIN, "x.safetensors", "--start", "graphs.safetensors"], "ONNX graphs are not for torch"),
        ([*TRAIN, "x.safetensors", "--teacher", "scores"], "has no networks"),
        (["reproduce", "mnist", "--root", "x", "--json", "nowhere/x.json"], "nowhere' of --json"),
        (["reproduce", "mnist", "--root", "x", "--plots", "file/figures"], "--plots 'file/figures'"),
        (["demo", "--out", "file"], "--out 'file'"),
        (["demo", "--out", "notes"], "drive' is not a bag"),
    ],
)
def test_a_verb_that_refuses_touches_nothing(inside, capsys, words, named):
    if words[0] == "demo":
        pytest.importorskip("rclpy")
    before = everything(inside)
    assert main(words) == 1
    complaint = capsys.readouterr().err.strip()
    assert named in complaint and "Traceback" not in complaint
    assert everything(inside) == before


def test_a_bag_is_overwritten_with_its_truth_where_that_is_asked_for(inside, capsys):
    assert main([*DRIVE, "drive", "--overwrite"]) == 0
    assert json.loads((inside / "drive.truth.json").read_text())["data_set"] == "signworld"
