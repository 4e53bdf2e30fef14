"""From a folder of images to a bundle, as a user would do it."""

import json
from types import SimpleNamespace

import cv2
import pytest

from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.cli.main import main
from lla_fusion_ros.lab.training.recipe import Recipe, _commands
from lla_fusion_ros.lab.training.training_settings import TrainSettings
from lla_fusion_ros.warnings.model import WarningModel
from support.toy_tracks import toy_tracks

OPTIONS = ["--size", "16", "--channels", "6,8,8", "--width", "8", "--members", "2", "--batch", "20"]


@pytest.fixture(scope="module", autouse=True)
def few_candidates():
    """Choosing among all fusers takes most of the time, and is tested by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lla_fusion_ros.lab.calibration.fusers.CANDIDATES", ("pool", "reliability"))
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("crops")
    for number, track in enumerate(toy_tracks(per_class=14).tracks):
        (root / track.id.split("/")[0]).mkdir(exist_ok=True)
        for step, frame in enumerate(track.frames):
            name = root / track.id.split("/")[0] / f"{number:05d}_{step:05d}.png"
            cv2.imwrite(str(name), frame.image[..., ::-1])
    return root


@pytest.fixture(scope="module")
def bundle_path(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "toy.safetensors"
    words = ["train", "--dataset", "folders", "--root", str(folder), "--epochs", "3", "--out", str(out)]
    assert main([*words, *OPTIONS]) == 0
    return out


def test_the_bundle_is_complete(bundle_path):
    bundle = load_bundle(bundle_path)
    assert bundle.class_names == ("left", "right", "top")
    assert bundle.networks == 2 and len(bundle.meta.softmax_temperature) == 2
    assert bundle.fuser().name == bundle.meta.default_fuser
    assert {"pool", "reliability", "wls_robust", "hybrid"} <= set(bundle.meta.fusers)
    assert isinstance(bundle.warning_model(), WarningModel)
    assert {"validation", "test"} <= set(bundle.meta.scores)
    assert bundle.meta.dataset["tracks"]["train"] > bundle.meta.dataset["tracks"]["test"] > 0
    assert not bundle_path.with_name(bundle_path.name + ".training").exists(), "checkpoints are tidied away"


def test_a_quick_first_bundle_says_what_was_loaded_and_what_to_be_careful_about(folder, tmp_path, capsys):
    out = tmp_path / "first.safetensors"
    words = ["train", "--dataset", "folders", "--root", str(folder), "--quick", "--out", str(out)]
    assert main([*words, "--size", "16", "--channels", "6,8,8", "--width", "8", "--epochs", "1"]) == 0
    captured = capsys.readouterr()
    assert "3 classes, 42 tracks, 210 images" in captured.err and "14 tracks of every class" in captured.err
    assert "training 30 tracks (150 images), validation 6 tracks (30 images)" in captured.err
    assert "caution: calibration rests on 6 validation tracks" in captured.err
    assert "warning models" in captured.err and "without --quick" in captured.out
    bundle = load_bundle(out)
    assert bundle.networks == 2 and bundle.meta.training["quick"] and bundle.warning_model() is not None


def test_too_few_validation_tracks_are_refused_before_the_training(folder, tmp_path, capsys):
    words = ["train", "--dataset", "folders", "--root", str(folder), "--holdout", "0,1", *OPTIONS]
    words += ["--draws", "1", "--fractions", "0.93,0.07,0", "--out", str(tmp_path / "x.safetensors")]
    assert main(words) == 1
    assert "1 validation tracks, calibration needs 4" in capsys.readouterr().err


def test_calibrating_again_keeps_the_networks_and_remembers_both_commands(bundle_path, folder, tmp_path):
    out = tmp_path / "again.safetensors"
    words = ["train", "--dataset", "folders", "--root", str(folder), "--epochs", "0", "--no-test"]
    assert main([*words, "--start", str(bundle_path), "--out", str(out)]) == 0
    before, after = load_bundle(bundle_path), load_bundle(out)
    assert (after.tensors["network.1.trunk.0.weight"] == before.tensors["network.1.trunk.0.weight"]).all()
    assert len(after.meta.training["commands"]) == 2
    assert after.meta.softmax_temperature == pytest.approx((1.0, 1.0), rel=0.02)


def test_networks_with_a_common_stem_keep_it_and_name_their_teacher(bundle_path, folder, tmp_path, capsys):
    data = ["--dataset", "folders", "--root", str(folder), "--quick"]
    out, after = tmp_path / "shared.safetensors", tmp_path / "after.safetensors"
    words = ["train", *data, *OPTIONS, "--shared", "2", "--epochs", "1", "--teacher", str(bundle_path)]
    assert main([*words, "--out", str(out)]) == 0
    assert main(["train", *data, "--start", str(out), "--epochs", "1", "--out", str(after)]) == 0
    for path in (out, after):
        bundle = load_bundle(path)
        assert "network.1.trunk.3.weight" not in bundle.tensors and bundle.meta.training["shared"] == 2
        assert "network.1.trunk.7.weight" in bundle.tensors
        assert bundle.meta.training["commands"][0] == load_bundle(bundle_path).meta.training["commands"][0]
    capsys.readouterr()
    assert main(["info", str(out)]) == 0 and "first 2 convolutions in common" in capsys.readouterr().out
    there = str(tmp_path / "x.safetensors")
    for mistake, cause in (
        (["--width", "9", "--members", "2"], "need more teachers, or one of that width each"),
        (["--width", "8", "--members", "3"], "need more teachers, or one of that width each"),
        (["--width", "8", "--margin", "0.2"], "take the same crops"),
    ):
        words = ["train", *data, "--size", "16", *mistake, "--teacher", str(bundle_path), "--out", there]
        assert main(words) == 1 and cause in capsys.readouterr().err


def test_fitting_one_fuser_again_changes_nothing_else(bundle_path, folder, tmp_path, capsys):
    out = tmp_path / "again.safetensors"
    words = ["calibrate", str(bundle_path), "--dataset", "folders", "--root", str(folder), "--draws", "1"]
    assert main([*words, "--fusers", "evidence_pool", "--out", str(out)]) == 0
    before, after = load_bundle(bundle_path), load_bundle(out)
    assert all((after.tensors[name] == tensor).all() for name, tensor in before.tensors.items())
    assert after.meta.warnings == before.meta.warnings
    changed = {name for name, values in after.meta.fusers.items() if values != before.meta.fusers[name]}
    assert changed <= {"evidence_pool"}
    assert len(after.meta.training["commands"]) == 2
    assert {"validation", "test", "laplace"} <= set(after.meta.scores)
    safety = after.meta.scores["default_fuser"]["safety"]
    assert not safety["evidence_pool"]["faults"] and after.meta.default_fuser == "evidence_pool"
    capsys.readouterr()
    assert main(["info", str(out)]) == 0
    assert "1 - p never falls below" in capsys.readouterr().out
    assert main(["calibrate", "signworld", "--dataset", "folders", "--root", str(folder), "--out", str(out)])
    assert "was trained on other data" in capsys.readouterr().err


def test_fitting_the_warnings_again_changes_nothing_else(bundle_path, folder, tmp_path, capsys):
    out = tmp_path / "again.safetensors"
    words = ["calibrate", str(bundle_path), "--dataset", "folders", "--root", str(folder), "--draws", "1"]
    assert main([*words, "--fusers", "none", "--out", str(out)])
    assert "--fusers none needs --warnings" in capsys.readouterr().err
    assert main([*words, "--fusers", "none", "--warnings", "--seed", "3", "--out", str(out)]) == 0
    before, after = load_bundle(bundle_path), load_bundle(out)
    kept = [name for name in before.tensors if not name.startswith("warnings")]
    assert kept and all((after.tensors[name] == before.tensors[name]).all() for name in kept)
    old, new = before.meta.as_dict(), after.meta.as_dict()
    assert {name for name in old if old[name] != new[name]} == {"warnings", "training"}
    assert after.warning_model().usual is not None


def test_networks_trained_on_all_tracks_are_calibrated_by_others_that_were_not(
    bundle_path, folder, tmp_path, capsys
):
    data = ["--dataset", "folders", "--root", str(folder)]
    out, kept = tmp_path / "all.safetensors", tmp_path / "kept"
    words = ["train", *data, "--all-tracks", "--start", str(bundle_path), "--epochs", "1", "--batch", "20"]
    words += ["--draws", "1", "--checkpoints", str(kept), "--out", str(out)]
    assert main(words) == 0
    before, bundle = load_bundle(bundle_path), load_bundle(out)
    record = bundle.meta.dataset
    assert record["all_tracks"] and (record["tracks"]["train"], record["tracks"]["test"]) == (42, 0)
    assert record["tracks"]["validation"] == sum(
        before.meta.dataset["tracks"][p] for p in ("validation", "test")
    )
    assert bundle.meta.scores["validation"]["tracks"] == record["tracks"]["validation"]
    assert "test" not in bundle.meta.scores and set(before.meta.fusers) == set(bundle.meta.fusers)
    assert bundle.tensors.keys() == before.tensors.keys()
    capsys.readouterr()
    assert main(["info", str(out)]) == 0 and "none are left to test on" in capsys.readouterr().out

    again = tmp_path / "again.safetensors"  # what was trained is kept, calibration is done again
    assert main([*words[:-1], str(again), "--resume"]) == 0
    assert "epoch" not in capsys.readouterr().err
    assert load_bundle(again).meta.fusers == bundle.meta.fusers

    fitted = tmp_path / "fitted.safetensors"  # or on what the networks before say, which had not seen them
    refit = ["calibrate", str(out), *data, "--draws", "1", "--fusers", "pool,mean_pmf", "--warnings"]
    assert main([*refit, "--stand-in", str(bundle_path), "--out", str(fitted)]) == 0
    alone = tmp_path / "alone.safetensors"
    assert main(["calibrate", str(bundle_path), *refit[2:], "--no-test", "--out", str(alone)]) == 0
    fitted, alone = load_bundle(fitted), load_bundle(alone)
    assert fitted.meta.fusers["pool"] == alone.meta.fusers["pool"] != bundle.meta.fusers["pool"]
    assert fitted.meta.fusers["ella"] == bundle.meta.fusers["ella"]
    assert fitted.meta.default_fuser in ("pool", "mean_pmf")
    assert fitted.meta.reliance == alone.meta.reliance and "test" not in fitted.meta.scores
    assert fitted.meta.warnings["unknown"]["alarm"] != bundle.meta.warnings["unknown"]["alarm"]
    capsys.readouterr()

    there = str(tmp_path / "x.safetensors")
    for mistake, cause in (
        (["calibrate", str(out), *data, "--stand-in", "signworld", "--out", there], "other data"),
        (["evaluate", str(out), *data], "without keeping test tracks aside"),
        (["calibrate", str(out), *data, "--out", there], "have seen all tracks"),
        (["train", *data, "--start", str(out), "--epochs", "1", "--out", there], "kept aside here"),
        (
            ["train", *data, "--start", str(bundle_path), "--split-seed", "1", "--out", there],
            "kept aside here",
        ),
        (
            ["train", *data, "--start", str(bundle_path), "--all-tracks", "--epochs", "0", "--out", there],
            "0 epochs",
        ),
    ):
        assert main(mistake) == 1
        assert cause in capsys.readouterr().err


def test_of_several_calibrations_alone_only_the_last_command_is_remembered():
    trained, calibrated = (
        "lla-fusion train --epochs 5 --out a",
        "lla-fusion train --start a --epochs 0 --out b",
    )
    start = SimpleNamespace(meta=SimpleNamespace(training={"commands": [trained, calibrated]}))
    again = "lla-fusion train --start b --out c --epochs 0"
    recipe = Recipe(TrainSettings({"name": "road", "size": 32}), start=start, command=again)
    assert _commands(recipe) == [trained, again]


def test_info_tells_what_is_in_the_bundle(bundle_path, capsys):
    assert main(["info", str(bundle_path)]) == 0
    text = capsys.readouterr().out
    assert "left" in text and "default fuser" in text and "test scores" in text
    assert main(["info", str(bundle_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["class_names"] == ["left", "right", "top"]
    assert document["hash"] == load_bundle(bundle_path).hash


def test_mistakes_are_one_sentence(folder, tmp_path, capsys):
    base = ["train", "--dataset", "folders", "--root", str(folder)]
    out = str(tmp_path / "x.safetensors")
    for words, cause in (
        ([*base, "--out", str(tmp_path / "no" / "x.safetensors")], "does not exist"),
        ([*base, "--out", out, "--epochs", "0"], "nothing to calibrate"),
        ([*base, "--out", out, "--network", "magic"], "magic"),
        ([*base, "--out", out, "--members", "0"], "members"),
        ([*base, "--out", out, "--fractions", "1,x"], "--fractions"),
        (["train", "--dataset", "gtsrb", "--root", str(tmp_path), "--out", out], "gtsrb"),
    ):
        assert main(words) != 0
        error = capsys.readouterr().err.strip().splitlines()[-1]
        assert error.startswith("lla-fusion: train:") and cause in error.lower(), error
    assert main(["info", str(tmp_path / "nothing.safetensors")]) != 0
