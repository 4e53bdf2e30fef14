"""The bench of whole drives fuses as a replay does, and counts what users see."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from bench.drive_runs import ALONE, SINGLE, DriveViews, Told, drive_of, drive_views, told_of
from bench.drive_scores import difference, lags, rows_of, rule_scores, warned
from bench.drives import main
from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import find_cameras
from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.lab.makebag.write import drive_frames, make_bag, truth_beside
from lla_fusion_ros.replay.replay import ReplayOptions, replay
from lla_fusion_ros.report.scoring import ScoreSink
from lla_fusion_ros.report.truth import read_truth
from lla_fusion_ros.signworld import CLASS_NAMES
from lla_fusion_ros.signworld.geometry import rig_of
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.views import Views
from lla_fusion_ros.warnings.result import OUT_OF_DISTRIBUTION, REASONS

SECONDS = 2.0
NAMES = ("red", "green", "stop")
CHANGING = np.array([True, True, False])


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache of its own, in which one drive is rendered."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def test_a_drive_is_fused_as_a_replay_of_its_bag_fuses_it(cache, tmp_path):
    drive, bundle = drive_of(1, SECONDS), load_bundle("signworld")
    bag = tmp_path / "drive"
    make_bag(drive_frames(drive), bag, "signworld", CLASS_NAMES, with_ids=False, rig=rig_of(drive))
    told = told_of("signworld", ("tracking",), (), SECONDS, 1)
    views = [drive_views(bundle, 1, SECONDS)]
    sink = ScoreSink(read_truth(truth_beside(bag)), bundle, FusionSettings())
    with Bag(bag) as opened:
        replay(opened, find_cameras(opened.summary), bundle, ReplayOptions(device="cpu"), [sink])
    for rule in (SINGLE, bundle.meta.default_fuser):
        rows = rows_of(views, [told["tracking", rule]], bundle.class_names, bundle.changing())
        ours, theirs = rule_scores(rows, "all"), sink.scores().of(rule)
        assert ours["views"] == theirs.views > 20
        assert ours["accuracy"] == pytest.approx(theirs.accuracy)
        assert ours["nll"] == pytest.approx(theirs.nll, rel=1e-4)


def test_every_way_and_rule_is_scored_and_written_and_the_networks_run_once(
    cache, tmp_path, monkeypatch, capsys
):
    drive_views(load_bundle("signworld"), 1, SECONDS)
    monkeypatch.setattr("bench.drive_runs._render", None)  # what is kept is not rendered again
    file = tmp_path / "drives.json"
    assert main(["--seeds", "1", "--duration", f"{SECONDS}", "--jobs", "1", "--json", str(file)]) == 0
    record = json.loads(file.read_text())
    assert "evidence_pool" in (shown := capsys.readouterr().out) and "scores" in shown
    rules = {(row["way"], row["rule"]): row for row in record["rules"] if row["part"] == "all"}
    for way in ("global", "tracking", "scores"):
        single, alone = rules[way, SINGLE], rules[way, ALONE]
        assert {"last", "vote", "mean_pmf", "pool"} <= {rule for own, rule in rules if own == way}
        assert single["of_single"] == alone["of_one_view"] == 1.0
    assert rules["global", "last"]["nll"] == pytest.approx(rules["global", SINGLE]["nll"], rel=1e-3)
    assert {row["default"] for (_, rule), row in rules.items() if rule == "evidence_pool"} == {True}


def test_other_rules_and_ways_are_chosen(cache, tmp_path):
    file = tmp_path / "drives.json"
    few = ["--seeds", "1,1", "--duration", f"{SECONDS}", "--jobs", "1", "--json", str(file)]
    assert main([*few, "--ways", "global,scores", "--rules", "ella"]) == 0
    record = json.loads(file.read_text())
    assert {(row["way"], row["rule"]) for row in record["lag"]} == {
        *(("global", rule) for rule in ("ella", "evidence_pool", SINGLE, ALONE)),
        *(("scores", rule) for rule in ("pool", SINGLE, ALONE)),
    }
    assert record["command"].endswith("--seeds 1,1 --duration 2 --ways global,scores --rules ella")


def test_what_cannot_be_run_is_one_sentence(capsys):
    assert main(["--seeds", "1", "--model", "nowhere"]) == 1
    assert capsys.readouterr().err.startswith("bench.drives: ")
    with pytest.raises(SystemExit):
        main(["--seeds", "one"])
    assert "--seeds one" in capsys.readouterr().err


def a_drive(names: list[str], sizes: list[float], objects: list[str]) -> DriveViews:
    """One camera, one box a frame, ten frames a second."""
    count = len(names)
    boxes = np.repeat(np.array(sizes)[:, None], 4, axis=1)
    stamps = np.arange(count) * 100_000_000
    views = Views(np.zeros((count, 1, 3)), np.zeros((count, 1, 2)))
    return DriveViews(
        1,
        1.0,
        np.repeat("left", count),
        stamps,
        np.arange(count),
        boxes,
        np.array(objects),
        np.array(names),
        np.arange(count),
        views,
    )


def shown(drive: DriveViews, said: list[tuple[str, float]], **more: list[bool]) -> Told:
    """A rule that says a class with a probability, and spreads the rest."""
    count = len(said)
    top, p = np.array([NAMES.index(name) for name, _ in said]), np.array([p for _, p in said])
    right = np.array([name == true for (name, _), true in zip(said, drive.names, strict=True)])
    false = np.zeros(count, bool)
    flags = {name: np.array(more.get(name, false), bool) for name in ("mixed", "joined", "far")}
    raised = np.zeros((count, len(REASONS)), bool)
    raised[:, REASONS.index(OUT_OF_DISTRIBUTION)] = more.get("unknown", false)
    rest = (1 - p) / 2
    truth, rival = np.where(right, p, rest), np.where(right, rest, p)
    return Told(np.arange(count), drive.objects, top, p, truth, rival, raised, **flags)


def test_frames_until_a_new_state_leads_are_counted_from_the_change():
    drive = a_drive(["red"] * 2 + ["green"] * 4 + ["red"] * 2, [30.0] * 8, ["a"] * 8)
    said = [("red", 0.99)] * 3 + [("red", 0.6)] + [("green", 0.8)] * 2 + [("red", 0.7)] * 2
    rows = rows_of([drive], [shown(drive, said)], NAMES, CHANGING)
    assert lags(rows) == {"changes": 2, "first": 0.5, "second": 0.5, "stale": 0.5}
    scores = rule_scores(rows, "lights")
    assert scores["sure_wrong"] == {"stale": 1, "mixed track": 0, "join": 0, "far": 0, "other": 0}
    assert scores["accuracy"] == 0.75 and scores["last_accuracy"] == 1.0


def test_a_moment_at_which_the_cameras_see_both_states_is_before_the_change():
    drive = a_drive(["red", "red", "red", "green", "green", "green"], [30.0] * 6, ["a"] * 6)
    drive = replace(drive, stamp=np.array([0, 5, 100, 105, 200, 205]) * 1_000_000)
    said = [("red", 0.99)] * 3 + [("red", 0.95)] + [("red", 0.6), ("green", 0.8)]
    rows = rows_of([drive], [shown(drive, said)], NAMES, CHANGING)
    assert lags(rows) == {"changes": 1, "first": 1.0, "second": 1.0, "stale": 1.0}


def test_a_change_that_nobody_sees_before_or_after_does_not_count():
    drive = a_drive(["red", "red"], [30.0] * 2, ["a", "a"])
    rows = rows_of([drive], [shown(drive, [("red", 0.9)] * 2)], NAMES, CHANGING)
    assert lags(rows) == {"changes": 0, "first": None, "second": None, "stale": None}


def test_wrong_and_sure_frames_are_counted_by_their_cause():
    drive = a_drive(["stop"] * 5, [30.0] * 5, ["a"] * 5)
    flags = {"mixed": [1, 0, 0, 0, 0], "joined": [1, 1, 0, 0, 0], "far": [1, 1, 1, 0, 0]}
    told = shown(drive, [("red", 0.95)] * 4 + [("red", 0.5)], **flags)
    scores = rule_scores(rows_of([drive], [told], NAMES, CHANGING), "signs")
    assert scores["sure_wrong"] == {"stale": 0, "mixed track": 1, "join": 1, "far": 1, "other": 1}


def test_warnings_are_shares_of_objects_and_of_views_in_boxes_of_a_size():
    drive = a_drive(["stop", "stop", "stop", "board"], [10.0, 16.0, 16.0, 40.0], ["a", "a", "b", "c"])
    told = shown(drive, [("stop", 0.9)] * 4, unknown=[True, False, True, True])
    found = {(row["kind"], row["size"]): row for row in warned(rows_of([drive], [told], NAMES, CHANGING))}
    unknown = {key: row["reasons"].get(OUT_OF_DISTRIBUTION) for key, row in found.items()}
    assert unknown["ordinary", "any"] == [1.0, pytest.approx(2 / 3)]
    assert unknown["ordinary", "< 14"] == [1.0, 1.0]
    assert unknown["ordinary", "14-20"] == [0.5, 0.5]
    assert unknown["unknown", ">= 32"] == [1.0, 1.0]
    assert unknown["ordinary", ">= 14"] == found["ordinary", ">= 14"]["reasons"]["any warning"] == [0.5, 0.5]
    assert unknown["ordinary", ">= 32"] is None


def test_the_difference_of_nll_is_over_objects():
    drive = a_drive(["stop"] * 4, [30.0] * 4, ["a", "a", "b", "c"])
    one, other = (rows_of([drive], [shown(drive, [("stop", p)] * 4)], NAMES, CHANGING) for p in (0.9, 0.45))
    found = difference(one, other, "signs")
    assert found["objects"] == 3
    assert found["nll_difference"] == pytest.approx(-np.log(2))
    assert found["interval"] == pytest.approx([-np.log(2)] * 2)
