"""`lla-fusion replay --bundle scores` as a user types it: the detector's scores of a bag are fused."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.writer import BagWriter
from lla_fusion_ros.bundle.bundle import PMF_FUSERS
from lla_fusion_ros.cli.main import main
from lla_fusion_ros.lab.makebag.write import SceneFrame, flickering, make_bag
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.contract import DETECTIONS, LABEL_INFO
from lla_fusion_ros.messages.detections import Listing, write_detections
from lla_fusion_ros.messages.status import parse_label_info, write_label_info

NAMES = ("car", "truck", "bus")
BOX = np.array([[4.0, 4.0, 0.0, 3.0, 3.0]])
STEP = 10**8


@pytest.fixture
def bag(tmp_path, monkeypatch):
    """Images and boxes of two objects, one second long."""
    monkeypatch.chdir(tmp_path)
    picture, boxes = np.full((8, 16, 3), 90, np.uint8), np.array([[4.0, 4, 3, 3], [10.0, 4, 3, 3]])
    frames = [
        SceneFrame("front", 10**9 + STEP * step, picture, boxes, ("1", "2"), ("car", "bus"))
        for step in range(10)
    ]
    make_bag(flickering(frames, NAMES, 0.2), tmp_path / "drive", "traffic", NAMES, "raw")
    return tmp_path / "drive"


def with_scores(path, scores):
    """A bag of one object, called a car with these scores."""
    told = Listing(class_names=("car",), rest=False)
    with BagWriter(path) as writer:
        writer.add("/yolo/boxes", DETECTIONS)
        for step, score in enumerate(scores):
            stamp = 10**9 + STEP * step
            said = write_detections(Header(stamp, "front"), ("1",), BOX, np.array([[score]]), told)
            writer.write("/yolo/boxes", stamp, said)
    return str(path)


def replayed(*words, capsys):
    code = main(["replay", *words])
    return code, " ".join(capsys.readouterr())


def test_all_fusers_are_compared_that_need_no_networks(bag, capsys):
    truth = ["--truth", "drive.truth.json", "--compare", "all"]
    assert replayed("drive", "--bundle", "scores", *truth, capsys=capsys)[0] == 0
    scored = json.loads((bag.parent / "drive_fused" / "scores.json").read_text())["fusers"]
    assert {each["fuser"] for each in scored} == {"single frame", *PMF_FUSERS}
    wrong = replayed("drive", "--bundle", "scores", *truth[:3], "ella", "--overwrite", capsys=capsys)
    assert wrong[0] == 1 and "needs networks" in wrong[1]


def test_a_video_of_scores_is_refused_for_what_it_lacks_and_not_for_what_the_bag_has(bag, capsys):
    code, told = replayed("drive", "--bundle", "scores", "--video", capsys=capsys)
    assert code == 0 and not (bag.parent / "drive_fused" / "video.mp4").exists()
    assert "there is no video: scores are fused without images" in told


def test_messages_with_scores_that_are_no_probabilities_are_left_out_and_told_of(bag, capsys):
    path = with_scores(bag.parent / "mixed", [0.9, 255.0, 0.8, float("nan"), 0.7])
    code, told = replayed(path, "--bundle", "scores", "--json", "mixed.json", capsys=capsys)
    assert code == 0 and "not fused: 2 bad scores" in told
    assert "/yolo/boxes says 'car: nan'" in told and "divide percent by 100" in told
    found = json.loads((bag.parent / "mixed.json").read_text())
    assert found["frames"] == 3 and found["counts"]["dropped_bad_scores"] == 2
    with Bag(bag.parent / "mixed_fused" / "fused") as fused:
        times = [message.time for message in fused.messages(["/fused_classes"])]
    assert [after - before for before, after in pairwise(times)] == [2 * STEP, 2 * STEP]


def labels_of(folder):
    with Bag(folder / "fused") as fused:
        (message,) = fused.messages(["/fused_classes/label_info"])
    return parse_label_info(message.data)


def test_class_numbers_are_the_users_else_the_detectors_else_the_sorted_names(bag, capsys):
    def labels(*words) -> tuple[str, ...]:
        assert replayed("drive", "--bundle", "scores", "--overwrite", *words, capsys=capsys)[0] == 0
        return labels_of(bag.parent / "drive_fused")

    met = labels()
    assert met == (*sorted(met[:-1]), "nothing_there") and {"car", "bus"} <= set(met)
    assert labels("--set", "class_names=tram, car, bus") == ("tram", "car", "bus", "nothing_there")
    with Bag(bag) as source, BagWriter(bag.parent / "told") as writer:
        for message in source.messages():
            writer.add(message.topic, message.type)
            writer.write(message.topic, message.time, message.data)
        writer.add("/front/detections/label_info", LABEL_INFO)
        writer.write(
            "/front/detections/label_info", 1, write_label_info(Header(0, ""), ("car", "truck", "bus"))
        )
    bag.rename(bag.parent / "plain")
    (bag.parent / "told").rename(bag)
    assert labels() == ("car", "truck", "bus", "nothing_there")
    code, told = replayed("drive", "--bundle", "gtsrb", "--set", "class_names=a,b", capsys=capsys)
    assert code == 1 and "setting 'class_names' is for the model 'scores'" in told


@pytest.mark.parametrize("words", [["replay", "--bundle", "scores"], ["calibrate", "--out", "s.safetensors"]])
def test_a_bag_without_any_probability_is_refused_with_the_way_out(bag, capsys, words):
    path = with_scores(bag.parent / "percent", [90.0, 80.0])
    truth = ["--truth", "drive.truth.json"]
    assert main([words[0], path, *words[1:], *truth]) == 1
    told = " ".join(capsys.readouterr())
    assert "/yolo/boxes says 'car: " in told and "divide percent by 100" in told
