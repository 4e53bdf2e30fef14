"""`lla-fusion make-bag`, `replay` and `info BAG` as a user types them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from replay.scenes import write_scene

from lla_fusion_ros.bundle import save_bundle
from lla_fusion_ros.cli.main import main
from lla_fusion_ros.signworld import CLASS_NAMES
from support.tiny_bundle import tiny_bundle


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    bundle = tiny_bundle(classes=len(CLASS_NAMES))
    path = tmp_path_factory.mktemp("model") / "tiny.safetensors"
    save_bundle(replace(bundle, meta=replace(bundle.meta, class_names=CLASS_NAMES)), path)
    return str(path)


@pytest.fixture
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_drive_is_made_described_replayed_and_scored(inside, model, capsys):
    words = ["make-bag", "--drive", "--out", "drive", "--duration", "1", "--rate", "5", "--encoding", "jpeg"]
    assert main(words) == 0
    assert "10 frames of left, right" in capsys.readouterr().out
    assert main(["info", "drive"]) == 0
    assert "can be fused: yes" in capsys.readouterr().out
    truth = ["--truth", "drive.truth.json", "--compare", "last,mean_pmf"]
    assert main(["replay", "drive", "--bundle", model, *truth]) == 0
    out = capsys.readouterr().out
    assert "single frame" in out and "AUROC" in out and "drive_fused/report.html" in out
    assert {path.name for path in (inside / "drive_fused").iterdir()} == {
        "fused",
        "fused.csv",
        "report.html",
        "scores.json",
    }


def test_a_fused_bag_is_fused_again_with_other_settings(inside, model, capsys):
    write_scene(inside / "drive", frames=4)
    assert main(["replay", "drive", "--bundle", model, "--no-csv", "--no-report"]) == 0
    capsys.readouterr()
    words = ["replay", "drive_fused/fused", "--bundle", model, "--fuser", "vote", "--out", "again", "--json"]
    assert main([*words, "--set", "idle_timeout=2", "--no-report"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["used"] == "views" and result["fuser"] == "vote" and result["views"] == 24
    assert (inside / "again" / "fused.csv").exists() and not (inside / "again" / "report.html").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["replay", "nowhere"], "does not exist"),
        (["replay", "drive", "--set", "window=0"], "must be in"),
        (["replay", "drive", "--set", "window=many"], "not of type int"),
        (["replay", "drive", "--set", "window"], "expected NAME=VALUE"),
        (["replay", "drive", "--set", "wind=3"], "no setting 'wind'; did you mean 'window'?"),
        (["replay", "drive", "--fuser", "magic"], "magic"),
        (["replay", "drive", "--fuser", "duel_pool"], "did you mean 'dual_pool'?"),
        (["replay", "drive", "--camera", "front"], "expected NAME="),
        (["replay", "drive", "--truth", "none.json"], "cannot be read"),
        (["replay", "drive", "--use", "views"], "it has no recorded views"),
        (["make-bag", "--out", "x"], "either --drive or --dataset"),
        (["make-bag", "--out", "drive", "--drive"], "exists already"),
        (["info", "nowhere"], "nowhere"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(inside, model, capsys, words, reason):
    write_scene(inside / "drive", frames=2)
    if words[0] == "replay":
        words = [*words, "--bundle", model]
    assert main(words) == 1
    captured = capsys.readouterr()
    assert reason in captured.err
    assert len(captured.err.strip().splitlines()) == 1
    assert not (inside / "drive_fused" / "fused.csv").exists() or words[0] != "replay"


def test_results_are_not_overwritten_by_accident(inside, model, capsys):
    write_scene(inside / "drive", frames=2)
    assert main(["replay", "drive", "--bundle", model]) == 0
    assert main(["replay", "drive", "--bundle", model]) == 1
    assert "--overwrite" in capsys.readouterr().err
    assert main(["replay", "drive", "--bundle", model, "--overwrite"]) == 0


def test_held_out_classes_keep_their_names_in_the_truth(inside, capsys):
    """Which classes are unknown is up to the bundle; the truth file names them all."""
    words = [
        "make-bag",
        "--dataset",
        "signworld",
        "--option",
        "tracks=34",
        "--out",
        "signs",
        "--part",
        "test",
    ]
    assert main([*words, "--holdout", "0,1", "--fractions", "0.4,0.3,0.3"]) == 0
    truth = json.loads((inside / "signs.truth.json").read_text())
    named = {span["class"] for spans in truth["tracks"].values() for span in spans}
    assert {CLASS_NAMES[0], CLASS_NAMES[1]} <= named
    assert truth["class_names"] == list(CLASS_NAMES)
