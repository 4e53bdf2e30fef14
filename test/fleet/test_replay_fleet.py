"""`lla-fusion replay` of many bags, on real Dask workers."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from distributed import Client
from fleet.conftest import BAGS, SETTINGS, command, copy_of, words

from lla_fusion_ros.cli.main import main
from lla_fusion_ros.fleet.folder import read_records
from support.browser import browser, needs_chromium
from support.processes import child_environment
from support.waiting import wait_for

SUMMARY = ("summary.json", "summary.html", "bags.parquet", "fleet.json")


def same(fleet: Path, other: Path) -> bool:
    """Byte for byte: the summary, and of every bag all but the times."""
    names = [f"bags/{path.name}/{file}" for path in (other / "bags").iterdir()
             for file in ("frames.parquet", "objects.parquet", "fused.csv", "scores.json")]  # fmt: skip
    assert sorted(os.listdir(fleet / "bags")) == sorted(os.listdir(other / "bags"))
    return all((fleet / name).read_bytes() == (other / name).read_bytes() for name in (*SUMMARY, *names))


def done_bags(out: Path) -> int:
    return len(list(out.glob("bags/*/bag.json")))


def test_a_bag_of_a_fleet_gets_what_it_gets_alone_and_tables_that_agree(
    undisturbed, model, recordings, tmp_path
):
    alone = ["--out", str(tmp_path / "alone"), "--truth", str(recordings / "drive3.truth.json")]
    assert main(["replay", str(recordings / "drive3"), "--bundle", model, *SETTINGS, *alone]) == 0
    folder = next(undisturbed.glob("bags/drive3-*"))
    assert (folder / "fused.csv").read_bytes() == (tmp_path / "alone" / "fused.csv").read_bytes()
    assert {path.name for path in folder.iterdir()} == {
        "fused", "fused.csv", "report.html", "scores.json", "frames.parquet", "objects.parquet", "pictures",
        "bag.json",
    }  # fmt: skip
    frames = pq.read_table(folder / "frames.parquet")
    assert len(frames) == 3 * 2 * 7 and len(pq.read_table(folder / "objects.parquet")) == 3
    scores = {row["fuser"]: row for row in json.loads((folder / "scores.json").read_text())["fusers"]}
    shown = pq.read_table(folder / "objects.parquet").to_pylist()
    known = [row for row in shown if row["truth_views"]]
    assert [row["truth"] for row in shown] == ["class 0", "class 1", None]
    assert [row["outside"] for row in shown] == [False, False, True]
    views = sum(row["truth_views"] for row in known)
    nll = sum(row["nll"] * row["truth_views"] for row in known) / views
    assert nll == pytest.approx(scores["pool"]["nll"], rel=1e-5) and views == scores["pool"]["views"]


def test_the_summary_adds_up_and_a_second_run_does_nothing(undisturbed, model, recordings, cluster):
    summary = json.loads((undisturbed / "summary.json").read_text())
    assert (summary["bags"], summary["objects"], summary["failed"]) == (BAGS, 3 * BAGS, {})
    assert (
        summary["frames"] == 2 * sum(4 + seed for seed in range(BAGS))
        and summary["views"] == 3 * summary["frames"]
    )
    assert sum(summary["classes"].values()) == 3 * BAGS and set(summary["cameras"]) == {"left", "right"}
    page = (undisturbed / "summary.html").read_text()
    assert "6 bags" in page and page.count("<img") == 3 * BAGS and "report.html" in page
    run = json.loads((undisturbed.parent / "run.json").read_text())
    assert len(run["fused"]) == BAGS and run["processes"] == 2
    before = {path: path.stat().st_mtime_ns for path in undisturbed.glob("bags/**/*")}
    again = command(model, recordings, undisturbed, "--cluster", cluster.address)
    assert again.returncode == 0 and f"0 bags fused, {BAGS} were there before" in again.stdout
    assert {path: path.stat().st_mtime_ns for path in undisturbed.glob("bags/**/*")} == before


@needs_chromium
def test_the_page_reads_well_in_a_browser_light_dark_and_on_a_phone(undisturbed, tmp_path):
    with browser(tmp_path / "profile") as page:
        for dark, phone in ((False, False), (True, False), (False, True)):
            page.look(dark, phone)
            page.open((undisturbed / "summary.html").as_uri())
            page.wait(
                f"document.images.length === {3 * BAGS} && [...document.images].every(i => i.naturalWidth)"
            )
            assert page.run("document.documentElement.scrollWidth <= innerWidth")
            assert page.run("[...document.images].every(image => image.alt)")
            assert page.pale_texts() == []
        assert page.console == []


def test_a_worker_that_is_killed_costs_nothing_but_time(undisturbed, model, recordings, cluster, tmp_path):
    out = tmp_path / "fleet"
    line = words(model, recordings, "--truth", recordings, "--out", out, "--cluster", cluster.address)
    with Client(cluster.address) as client:
        client.wait_for_workers(2, timeout=120)
        victim = min(client.run(os.getpid).values())
        replay = subprocess.Popen(line, env=child_environment())
        wait_for(lambda: done_bags(out) >= 1, what="the first bag")
        os.kill(victim, signal.SIGKILL)
        assert replay.wait(300) == 0
        client.wait_for_workers(2, timeout=120)
    assert same(out, undisturbed) and not (out / ".parts").exists()


def test_a_client_that_is_killed_goes_on_where_it_was(undisturbed, model, recordings, tmp_path):
    """On processes of its own, which end with it."""
    out = tmp_path / "fleet"
    line = words(model, recordings, "--truth", recordings, "--out", out, "--workers", 2)
    replay = subprocess.Popen(line, env=child_environment())
    wait_for(lambda: done_bags(out) >= 1, what="the first bag")
    replay.kill()
    replay.wait()
    kept = {path: path.stat().st_mtime_ns for path in out.glob("bags/*/bag.json")}
    done = command(model, recordings, out, "--workers", 2)
    assert done.returncode == 0, done.stderr
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())
    assert same(out, undisturbed)


def test_bad_bags_are_listed_and_do_not_stop_the_rest(undisturbed, model, recordings, cluster, tmp_path):
    bad = copy_of(recordings, tmp_path / "bags")
    copy_of(bad / "drive1", bad / "twin")
    (bad / "empty").mkdir()
    (bad / "empty" / "empty_0.mcap").touch()
    (bad / "text").mkdir()
    (bad / "text" / "text_0.db3").write_bytes(b"no database" * 100)
    (bad / "list.txt").write_text("drive*\ntwin\nempty\ntext\nmissing\n")
    out = tmp_path / "fleet"
    line = words(
        model, bad / "list.txt", "--truth", bad, "--out", out, "--cluster", cluster.address, "--json"
    )
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, env=child_environment())
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)
    assert {Path(path).name for path in result["failed"]} == {"empty", "text", "missing"}
    assert all(result["failed"].values()) and "does not exist" in result["failed"][str(bad / "missing")]
    assert result["duplicates"] == {str(bad / "twin"): str(bad / "drive1")}
    assert result["bags"] == BAGS and len(result["run"]["fused"]) == BAGS
    assert sorted(os.listdir(out / "bags")) == sorted(os.listdir(undisturbed / "bags"))


def test_a_bag_that_changed_is_fused_again_and_its_old_results_go(model, recordings, cluster, tmp_path):
    bags = copy_of(recordings, tmp_path / "bags")
    out = tmp_path / "fleet"
    assert command(model, bags, out, "--cluster", cluster.address).returncode == 0
    for file in (bags / "drive0").iterdir():
        file.write_bytes((bags / "drive1" / file.name.replace("drive0", "drive1")).read_bytes())
    (bags / "drive5.truth.json").unlink()
    done = command(model, bags, out, "--cluster", cluster.address)
    assert "1 bags fused" in done.stdout, done.stderr  # without its truth; drive0 is now the same as drive1
    records = read_records(out)
    assert len(records) == BAGS - 1 and [r["truth_digest"] for r in records if "drive5" in r["name"]] == [""]


def test_results_stay_while_their_bags_cannot_be_read_and_say_so(model, recordings, cluster, tmp_path):
    drive, away, out = tmp_path / "drive", tmp_path / "unplugged", tmp_path / "fleet"
    copy_of(recordings, drive)
    (tmp_path / "list.txt").write_text("drive/drive0\ndrive/drive1\ndrive/drive2\n")
    line = words(model, tmp_path / "list.txt", "--out", out, "--cluster", cluster.address)

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(line, capture_output=True, text=True, timeout=300, env=child_environment())

    assert run().returncode == 0
    results = {path: path.read_bytes() for path in out.glob("bags/*/*.*")}
    tables = {name: (out / name).read_bytes() for name in SUMMARY}
    states = pq.read_table(out / "bags.parquet")["state"].to_pylist()
    drive.rename(away)
    done = run()
    assert done.returncode == 1 and "0 bags fused\n" in done.stdout
    sentence = f"drive1: bag '{drive / 'drive1'}' does not exist; its earlier results are kept"
    assert sentence in done.stdout and "all: 3 bags, 9 objects" in done.stdout
    assert {path: path.read_bytes() for path in out.glob("bags/*/*.*")} == results
    summary, page = json.loads((out / "summary.json").read_text()), (out / "summary.html").read_text()
    assert [each["path"] for each in summary["kept"].values()] == [str(drive / f"drive{i}") for i in range(3)]
    assert "3 bags" in page and "Results of an earlier run" in page and page.count("does not exist") == 6
    rows = pq.read_table(out / "bags.parquet").to_pylist()
    assert [row["state"] for row in rows] == [f"kept: bag '{row['path']}' does not exist" for row in rows]
    away.rename(drive)
    assert run().returncode == 0 and states == ["current"] * 3
    assert {path: path.read_bytes() for path in out.glob("bags/*/*.*")} == results
    assert {name: (out / name).read_bytes() for name in SUMMARY} == tables
    drive.rename(tmp_path / "port2")
    (tmp_path / "list.txt").write_text("port2/drive0\nport2/drive1\n")
    done = run()
    assert done.returncode == 0
    assert f"kept: {drive / 'drive2'}: not looked at in the last run" in done.stdout
    places = [record["path"] for record in read_records(out)]
    assert places == [str(tmp_path / place) for place in ("port2/drive0", "port2/drive1", "drive/drive2")]
    states = pq.read_table(out / "bags.parquet")["state"].to_pylist()
    assert states == ["current", "current", "kept: not looked at in the last run"]


def test_only_a_bag_that_was_fused_anew_takes_the_place_of_its_old_results(
    model, recordings, cluster, tmp_path
):
    bags, out = copy_of(recordings, tmp_path / "bags"), tmp_path / "fleet"
    list_, storage = tmp_path / "list.txt", next((bags / "drive0").glob("*.mcap"))
    list_.write_text("bags/drive0\nbags/drive1\n")
    line = words(model, list_, "--truth", bags, "--out", out, "--cluster", cluster.address, "--json")

    def run() -> tuple[int, dict[str, str]]:
        done = subprocess.run(line, capture_output=True, text=True, timeout=300, env=child_environment())
        kept = json.loads(done.stdout)["kept"]
        return done.returncode, {name.split("-")[0]: each["why"] for name, each in kept.items()}

    assert run() == (0, {})
    whole = storage.read_bytes()
    storage.write_bytes(b"")  # as a drive that was unplugged while it was written to may leave it
    code, kept = run()
    assert code == 1 and list(kept) == ["drive0"] and len(read_records(out)) == 2
    storage.write_bytes(whole)
    (bags / "drive0.truth.json").write_text("{")  # can be looked at, but not be fused with
    code, kept = run()
    assert code == 1 and "drive0.truth.json" in kept["drive0"] and len(read_records(out)) == 2
    list_.write_text("bags/drive1\n")
    assert run() == (0, {"drive0": "not looked at in the last run"})
    list_.write_text("bags/drive0\nbags/drive1\n")
    (bags / "drive0.truth.json").unlink()
    storage.write_bytes(next((bags / "drive2").glob("*.mcap")).read_bytes())
    assert run() == (0, {}) and len(read_records(out)) == 2


def test_results_of_another_plan_are_not_overwritten_while_no_bag_can_be_read(
    undisturbed, model, recordings, cluster, tmp_path, capsys
):
    out = copy_of(undisturbed, tmp_path / "fleet")
    (tmp_path / "list.txt").write_text("unplugged/drive0\nunplugged/drive1\n")
    replay = ["replay", str(tmp_path / "list.txt"), "--bundle", model, *SETTINGS, "--out", str(out)]
    assert main([*replay, "--fuser", "vote", "--overwrite", "--cluster", cluster.address]) == 1
    assert "no bag can be read, so nothing is overwritten: bag '" in capsys.readouterr().err
    assert same(out, undisturbed)
    (tmp_path / "unplugged").mkdir()
    (tmp_path / "truths").mkdir()
    copy_of(recordings / "drive0", tmp_path / "unplugged" / "drive0")
    assert main([*replay, "--truth", str(tmp_path / "truths"), "--cluster", cluster.address]) == 1
    assert "truths' has no file NAME.truth.json; is its drive mounted?" in capsys.readouterr().err
    assert same(out, undisturbed)
    assert main([*replay, "--fuser", "vote", "--overwrite", "--cluster", cluster.address]) == 1
    assert [record["path"] for record in read_records(out)] == [str(tmp_path / "unplugged" / "drive0")]


def test_a_full_disk_stops_the_run_and_what_is_done_stays(model, recordings, tmp_path):
    out = tmp_path / "fleet"
    line = words(model, recordings, "--out", out, "--workers", 1, "--no-report")
    small = 40_000  # bytes of a file: the fused bags of some drives, not of all

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (small, small))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    done = subprocess.run(
        line, capture_output=True, text=True, timeout=300, env=child_environment(), preexec_fn=limited
    )
    assert done.returncode == 1 and "stopped: the disk is full" in done.stdout, done.stdout + done.stderr
    assert not list(out.glob(".parts/*"))
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, env=child_environment())
    assert done.returncode == 0 and done_bags(out) == BAGS, done.stderr


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--workers", "0"], "there must be at least one"),
        (["--workers", "1", "--cluster", "tcp://localhost:1"], "give one of them"),
        (["--cluster", "tcp://127.0.0.1:9"], "no Dask scheduler answers at 'tcp://127.0.0.1:9'"),
        (["--truth", "no.json"], "give the folder of NAME.truth.json files"),
        (["--export-hard", "many", "hard"], "expected how many objects"),
        (["--out", "taken"], "taken' has other files in it"),
        (["--fuser", "nonsense"], "there is no fuser 'nonsense'"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(
    model, recordings, tmp_path, monkeypatch, capsys, more, sentence
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.txt").touch()
    monkeypatch.setattr("lla_fusion_ros.fleet.run._CONNECT", 1.0)
    assert main(["replay", str(recordings), "--bundle", model, "--out", "fleet", *more]) == 1
    assert sentence in capsys.readouterr().err
    assert not list((tmp_path).glob("fleet/bags"))


def test_another_plan_needs_another_place_or_leave_to_overwrite(
    undisturbed, model, recordings, cluster, capsys
):
    replay = ["replay", str(recordings), "--bundle", model, *SETTINGS, "--out", str(undisturbed)]
    before = {path: path.stat().st_mtime_ns for path in undisturbed.glob("bags/**/*")}
    assert main([*replay, "--fuser", "vote", "--cluster", cluster.address]) == 1
    error = capsys.readouterr().err
    assert "has results of another plan (fuser was 'pool', is 'vote'" in error and "--overwrite" in error
    assert {path: path.stat().st_mtime_ns for path in undisturbed.glob("bags/**/*")} == before


def test_two_runs_do_not_write_to_one_folder(model, recordings, tmp_path, capsys):
    hold = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, 2); print(flush=True); input()"
    out = tmp_path / "fleet"
    out.mkdir()
    line = [sys.executable, "-c", hold, str(out / ".lock")]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout and other.stdout.readline()
        assert main(["replay", str(recordings), "--bundle", model, "--out", str(out)]) == 1
        assert "another run writes to" in capsys.readouterr().err
        other.kill()
