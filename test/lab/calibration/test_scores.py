from __future__ import annotations

import json

import numpy as np
import pytest

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.cli.main import main
from lla_fusion_ros.lab.makebag.write import SceneFrame, flickering, make_bag
from lla_fusion_ros.messages.detections import parse_detections

NAMES = ("car", "truck", "bus", "tram", "van")


def drive(seed: int, objects: int = 40, frames: int = 12):
    """Objects one after the other, two at a time, each for `frames` frames."""
    label = np.random.default_rng(seed).integers(0, len(NAMES), objects)
    for start in range(0, objects, 2):
        pair = range(start, min(start + 2, objects))
        for step in range(frames):
            yield SceneFrame(
                "front",
                10**9 + 10**8 * (frames * start // 2 + step),
                np.zeros((8, 8, 3), np.uint8),
                np.array([[2.0 + 4 * (each - start), 4, 3, 3] for each in pair]),
                tuple(str(each) for each in pair),
                tuple(NAMES[label[each]] for each in pair),
            )


@pytest.fixture(scope="module")
def bags(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bags")
    for name, seed in (("known", 1), ("new", 2)):
        make_bag(flickering(drive(seed), NAMES, 0.4, seed), folder / name, "traffic", NAMES, "raw")
    return folder


def test_a_labelled_recording_makes_a_bundle_that_is_truer_on_another_one(bags, capsys):
    known, new, out = str(bags / "known"), bags / "new", bags / "scores.safetensors"
    assert main(["calibrate", known, "--truth", f"{known}.truth.json", "--out", str(out)]) == 0
    bundle = load_bundle(out)
    assert bundle.for_scores and bundle.class_names == NAMES
    assert bundle.reliance() is not None
    confusion = bundle.tensors["scores.confusion"]
    np.testing.assert_allclose(confusion.sum(axis=1), 1, atol=1e-5)
    scores = {}
    for model in ("scores", str(out)):
        command = ["replay", str(new), "--bundle", model, "--truth", f"{new}.truth.json", "--overwrite"]
        assert main([*command, "--out", str(bags / "out"), "--json", str(bags / "out.json")]) == 0
        document = json.loads((bags / "out.json").read_text())
        assert document["used"] == "scores"
        scores[model] = {each["fuser"]: each for each in document["scores"]["fusers"]}
        scores[model]["fused"] = scores[model][document["fuser"]]
    for own in scores.values():
        assert own["fused"]["nll"] < own["single frame"]["nll"] / 2
        assert own["fused"]["accuracy"] > own["single frame"]["accuracy"] + 0.15
    assert scores[str(out)]["fused"]["nll"] < scores["scores"]["fused"]["nll"]
    assert "uncalibrated" in capsys.readouterr().out


def test_a_truth_of_other_classes_is_refused(bags, tmp_path, capsys):
    truth = tmp_path / "truth.json"
    truth.write_text((bags / "known.truth.json").read_text().replace("car", "cat").replace("bus", "dog")
                     .replace("truck", "cow").replace("tram", "pig").replace("van", "hen"))  # fmt: skip
    out = tmp_path / "scores.safetensors"
    assert main(["calibrate", str(bags / "known"), "--truth", str(truth), "--out", str(out)]) != 0
    assert "share no class" in capsys.readouterr().err


def test_frames_in_which_nothing_is_seen_are_calibrated_and_replayed(tmp_path):
    nothing = np.zeros((8, 8, 3), np.uint8), np.zeros((0, 4)), (), ()
    frames = [SceneFrame("front", 10**9 - 10**8, *nothing), *drive(1), SceneFrame("front", 10**11, *nothing)]
    known = str(tmp_path / "known")
    make_bag(flickering(frames, NAMES, 0.4), tmp_path / "known", "traffic", NAMES, "raw")
    out, document = str(tmp_path / "scores.safetensors"), tmp_path / "known.json"
    assert main(["calibrate", known, "--truth", f"{known}.truth.json", "--out", out]) == 0
    for model in ("scores", out):
        command = ["replay", known, "--bundle", model, "--overwrite", "--json", str(document)]
        assert main([*command, "--truth", f"{known}.truth.json"]) == 0
        replayed = json.loads(document.read_text())
        assert replayed["frames"] == replayed["counts"]["frames"] == len(frames)
    with Bag(tmp_path / "known_fused" / "fused") as bag:
        counts = [len(parse_detections(each.data)) for each in bag.messages(["/fused_classes"])]
    assert counts == [len(frame.ids) for frame in frames]
