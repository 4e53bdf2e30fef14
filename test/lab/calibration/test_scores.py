from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import find_cameras
from lla_fusion_ros.bags.writer import BagWriter
from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.bundle.bundle import SCORES
from lla_fusion_ros.bundle.score_bundle import bundle_of, score_meta
from lla_fusion_ros.cli.main import main
from lla_fusion_ros.lab.calibration.scores import read_tracks
from lla_fusion_ros.lab.makebag.write import SceneFrame, flickering, make_bag
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.detections import parse_detections, write_detections
from lla_fusion_ros.report.truth import read_truth

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
    assert bundle.for_scores and bundle.named_classes == NAMES and bundle.reserved == ("nothing_there",)
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


def detected(frames, seed: int):
    """As a detector without a tracker finds them: boxes that jitter, some missed, some where nothing is."""
    rng = np.random.default_rng(seed)
    for number, frame in enumerate(frames):
        place = 300.0 * (number // 12 % 5)  # another one for the next objects
        boxes = frame.boxes * 10 + [0, place, 0, 0]
        clean = replace(frame, boxes=boxes)
        rows = [row for row in range(len(boxes)) if row == 0 or rng.random() > 0.1]
        found = boxes[rows] + rng.normal(0, 1, (len(rows), 4))
        said, classes = frame.said[rows] / 2, [frame.classes[row] for row in rows]
        said[np.arange(len(rows)), said.argmax(axis=1)] += 0.5  # sure enough for a track to begin
        if rng.random() < 0.2:
            found = np.vstack([found, [*rng.uniform(2000, 9000, 2), 30, 30]])
            said, classes = np.vstack([said, rng.dirichlet(np.ones(len(NAMES)))]), [*classes, None]
        ids = tuple(map(str, range(len(found))))
        yield clean, replace(frame, boxes=found, said=said, classes=tuple(classes), ids=ids)


@pytest.fixture(scope="module")
def without_ids(tmp_path_factory):
    """Bags of a detector without a tracker, and truths that say where the objects are."""
    folder = tmp_path_factory.mktemp("without_ids")
    for name, seed in (("known", 1), ("new", 2)):
        clean, found = zip(*detected(flickering(drive(seed), NAMES, 0.4, seed), seed), strict=True)
        make_bag(clean, folder / "clean", "traffic", NAMES, "raw", overwrite=True)
        make_bag(found, folder / name, "traffic", NAMES, "raw", with_ids=False)
        (folder / "clean.truth.json").replace(folder / f"{name}.truth.json")
    return folder


def test_a_detector_without_ids_gets_a_calibrated_model(without_ids, capsys):
    known, out = str(without_ids / "known"), str(without_ids / "scores.safetensors")
    assert main(["calibrate", known, "--truth", f"{known}.truth.json", "--out", out]) == 0
    assert "only they are judged" in capsys.readouterr().out
    assert load_bundle(out).named_classes == NAMES
    fused = {}
    for model in ("scores", out):
        new, result = str(without_ids / "new"), without_ids / "out.json"
        command = ["replay", new, "--bundle", model, "--truth", f"{new}.truth.json", "--overwrite"]
        assert main([*command, "--json", str(result)]) == 0
        document = json.loads(result.read_text())
        scores = {each["fuser"]: each for each in document["scores"]["fusers"]}
        fused[model] = scores[document["fuser"]]
        assert fused[model]["nll"] < scores["single frame"]["nll"] / 2
        assert fused[model]["accuracy"] > scores["single frame"]["accuracy"] + 0.15
    assert fused[out]["nll"] < fused["scores"]["nll"]


def test_a_calibration_takes_the_tracks_that_are_one_class_and_leaves_out_boxes_that_are_nothing(
    without_ids,
):
    truth = read_truth(without_ids / "known.truth.json")
    stamps = sorted(truth.frames)
    sparse = replace(truth, frames={place: truth.frames[place] for place in stamps[::3]})
    meta = score_meta(NAMES, {"name": SCORES, "said": list(NAMES)})
    bundle = bundle_of(meta)
    with Bag(without_ids / "known") as bag:
        cameras = find_cameras(bag.summary, False).cameras
        every, _ = read_tracks(bag, cameras, bundle, truth)
        some, _ = read_tracks(bag, cameras, bundle, sparse)
    nothing = [tracks.label == len(NAMES) for tracks in (every, some)]
    assert 0 < nothing[1].sum() <= nothing[0].sum()
    every, some = every.take(~nothing[0]), some.take(~nothing[1])
    assert every.objects == some.objects == 40
    matched = sum(len(frame.boxes) for frame in truth.frames.values())
    assert 0.9 * matched < every.steps.sum() <= matched
    # between the stamps of a truth its tracks go on
    assert 0.95 * every.steps.sum() < some.steps.sum() <= every.steps.sum() + 60
    assert sorted(set(zip(every.source.tolist(), every.label.tolist(), strict=True))) == sorted(
        set(zip(some.source.tolist(), some.label.tolist(), strict=True))
    )


def test_messages_with_bad_scores_are_counted_in_a_note(bags, tmp_path, capsys):
    with Bag(bags / "known") as bag, BagWriter(tmp_path / "known") as writer:
        topic = find_cameras(bag.summary, False).cameras[0].detections
        for number, message in enumerate(bag.messages([topic])):
            writer.add(topic, message.type)
            percent = write_detections(Header(number, "front"), ("1",), np.ones((1, 5)), np.array([[90.0]]))
            writer.write(topic, message.time, percent if number % 100 == 7 else message.data)
    truth, out = str(bags / "known.truth.json"), str(tmp_path / "scores.safetensors")
    assert main(["calibrate", str(tmp_path / "known"), "--truth", truth, "--out", out]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "note: 3 messages of detections are left out: " in told and "says '0: 90'" in told


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: text.replace('"box": [', '"box": [1e3, 1e3, 30, 30], "old": ['), "none of the"),
        (lambda text: text.replace('"camera": "front"', '"camera": "back"'), "it is about back from stamp"),
        (
            lambda text: "\n".join(
                re.sub('"class": "[a-z]+"', f'"class": "{NAMES[number // 2 % 2]}"', line)
                for number, line in enumerate(text.splitlines())
            ),
            "the truth knows 0 of the",
        ),
        (lambda text: "\n".join([*text.splitlines()[:50]])[:-1] + "]}", "needed to calibrate on"),
    ],
)
def test_a_truth_that_nothing_can_be_calibrated_on_is_refused_in_one_sentence(
    without_ids, tmp_path, capsys, change, reason
):
    truth, out = tmp_path / "truth.json", tmp_path / "scores.safetensors"
    truth.write_text(change((without_ids / "known.truth.json").read_text()))
    command = ["calibrate", str(without_ids / "known"), "--truth", str(truth), "--out", str(out)]
    assert main(command) == 1
    error = capsys.readouterr().err
    assert reason in error and len(error.strip().splitlines()) == 1 and not out.exists()


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
