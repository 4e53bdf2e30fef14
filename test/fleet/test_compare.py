"""`lla-fusion compare`, and the data set of hard objects."""

from __future__ import annotations

import csv
import json
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow.parquet as pq
import pytest
from fleet.conftest import BAGS, SETTINGS, command, words
from replay.scenes import write_scene

from lla_fusion_ros.cli.main import main
from lla_fusion_ros.fleet.compare import Difference, compare_fleets, read_limit
from lla_fusion_ros.lab.datasets.folders import load_folders
from lla_fusion_ros.types.errors import InputError
from support.processes import child_environment


@pytest.fixture(scope="module")
def other(tmp_path_factory, model, recordings, cluster) -> Path:
    """The same bags, another fuser."""
    out = tmp_path_factory.mktemp("other") / "fleet"
    done = command(model, recordings, out, "--cluster", cluster.address, "--fuser", "last", "--no-bag")
    assert done.returncode == 0, done.stderr
    return out


def test_a_fleet_equals_itself(undisturbed):
    found = compare_fleets(undisturbed, undisturbed)
    assert (found.bags, found.objects, found.other_class, found.changed, found.settings) == (
        BAGS,
        18,
        0,
        [],
        [],
    )
    assert {each.name for each in found.differences} >= {"accuracy", "nll", "ece", "missed", "false_alarms"}
    assert all((each.change, each.low, each.high) == (0, 0, 0) for each in found.differences)


def test_differences_are_those_of_the_objects_and_their_intervals_hold_them(
    undisturbed, other, capsys, tmp_path
):
    page = tmp_path / "changes.html"
    assert main(["compare", str(undisturbed), str(other), "--json", "--html", str(page)]) == 0
    result = json.loads(capsys.readouterr().out)
    tables = [
        [
            row
            for file in sorted(fleet.glob("bags/*/objects.parquet"))
            for row in pq.read_table(file).to_pylist()
        ]
        for fleet in (undisturbed, other)
    ]
    changed = sum(a["fused_class"] != b["fused_class"] for a, b in zip(*tables, strict=True))
    assert result["other_class"] == changed == sum(move["objects"] for move in result["moves"])
    found = {each["name"]: each for each in result["differences"]}
    for side, rows in zip("ab", tables, strict=True):
        known = [row for row in rows if row["truth_views"]]
        nll = np.average([r["nll"] for r in known], weights=[r["truth_views"] for r in known])
        assert found["nll"][side] == pytest.approx(nll)
    assert found["nll"]["low"] <= found["nll"]["change"] <= found["nll"]["high"]
    assert "fuser: pool → last" in result["settings"] and result["drawn"] == "objects"
    assert all(0 <= row["moved"] <= 1 for row in result["changed"])
    assert "What changed" in page.read_text() and "fuser" in page.read_text()


def test_a_limit_that_is_broken_is_exit_code_3(undisturbed, other, capsys):
    fleets = [str(undisturbed), str(other)]
    assert main(["compare", *fleets, "--fail-if", "nll>+1000%"]) == 0
    worse = next(each for each in compare_fleets(undisturbed, other).differences if each.name == "nll")
    limit = f"nll{'>' if worse.change > 0 else '<'}{worse.change / 2:+.6f}"
    assert main(["compare", *fleets, "--fail-if", limit, "--fail-if", "accuracy<-1"]) == 3
    assert f"limit broken: {limit}: nll went from" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "a", "b", "broken"),
    [
        ("nll>+2%", 1.0, 1.019, False),
        ("nll>+2%", 1.0, 1.021, True),
        ("nll>+2%", 0.0, 0.001, True),
        ("nll<-0.1", 1.0, 0.8, True),
        ("nll < -0.1", 1.0, 0.95, False),
        ("ece>0", 1.0, 1.0, True),  # a number that is not there holds no limit
    ],
)
def test_limits_are_shares_with_a_percent_sign_and_differences_without(text, a, b, broken):
    found = Difference("nll", a, b, b - a, 0, 0, (b - a) / a if a else None)
    assert bool(read_limit(text).broken_by([found])) == broken


@pytest.mark.parametrize("text", ["nll", "nll>two", "speed>1", "nll=1"])
def test_a_limit_that_says_nothing_is_refused(text):
    with pytest.raises(InputError, match="expected NAME>VALUE"):
        read_limit(text)


def test_folders_without_a_common_bag_are_not_compared(undisturbed, tmp_path):
    with pytest.raises(InputError, match="is no folder of"):
        compare_fleets(undisturbed, tmp_path)
    (tmp_path / "fleet.json").write_text((undisturbed / "fleet.json").read_text())
    with pytest.raises(InputError, match="have no bag in common"):
        compare_fleets(undisturbed, tmp_path)


def test_every_hard_object_has_crops_of_its_own_under_a_name_that_tells(model, cluster, tmp_path):
    ids = ["a/b", "a_b", "a:b", r"a\x1bb", "a\x1bb", "語" * 90, "語" * 91, "\udcff"]
    bags, out, hard = tmp_path / "bags", tmp_path / "fleet", tmp_path / "to_label"
    write_scene(bags / "dr\x1bive\udcff #1%", frames=3, cameras=("left",), ids=ids)
    line = words(model, bags, "--out", out, "--cluster", cluster.address, "--export-hard", 50, hard)
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, env=child_environment())
    assert done.returncode == 0 and "not exported" not in done.stdout, done.stdout + done.stderr
    rows = list(csv.DictReader((hard / "hard.csv").open(encoding="utf8", newline="")))
    assert len(rows) == len(ids) and len({row["object"] for row in rows}) == len(ids)
    tracks = load_folders(hard).tracks
    assert len(tracks) == len(ids) and all(len(track.frames) == 3 for track in tracks)
    for end in ("~a%2Fb", "~a_b", "~a%3Ab"):
        assert any(track.id.endswith(end) for track in tracks)
    tables = [
        pq.read_table(file).to_pylist() for file in (out / "bags.parquet", *out.glob("bags/*/*.parquet"))
    ]
    shown = [
        text for table in (*tables, rows) for row in table for text in row.values() if isinstance(text, str)
    ]
    pages = [out / "summary.html", *out.glob("bags/*/report.html")]
    shown += [line for page in pages for line in page.read_text(encoding="utf8").split("\n")]
    assert len(pages) == 2 and all(map(str.isprintable, (*shown, *done.stdout.splitlines())))
    link = re.search(r"href='(bags/[^']+)'", pages[0].read_text()).group(1)
    assert (out / unquote(link)).exists()


def test_hard_objects_become_a_data_set_of_folders(undisturbed, model, recordings, cluster, tmp_path, capsys):
    hard = tmp_path / "to_label"
    replay = ["replay", str(recordings), "--bundle", model, *SETTINGS, "--out", str(undisturbed)]
    replay += ["--truth", str(recordings), "--cluster", cluster.address, "--export-hard", "9", str(hard)]
    assert main(replay) == 0
    rows = list(csv.DictReader((hard / "hard.csv").open()))
    assert len(rows) == 9 and {row["why"] for row in rows} >= {"unknown", "unsure"}
    tracks = load_folders(hard)
    assert {track.id for track in tracks.tracks} == {f"{row['folder']}/{row['track']}" for row in rows}
    assert "unknown" in tracks.class_names and all(len(track.frames) >= 8 for track in tracks.tracks)
    assert tracks.tracks[0].frames[0].image.shape[:2] == (16, 16)  # the box, as it is
    assert main(replay) == 1 and "name a new folder" in capsys.readouterr().err
