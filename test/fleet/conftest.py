"""Bags, a model and a real Dask cluster: a scheduler and two workers, each a process of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from replay.scenes import START, STEP, write_scene

from lla_fusion_ros.bundle import save_bundle
from lla_fusion_ros.report.truth import Shown, Truth, TruthFrame, TruthSpan, write_truth
from support.processes import RosProcess, child_environment
from support.waiting import wait_for
from support.watched_bundle import watched_bundle

BAGS = 6
SETTINGS = ["--set", "identity=global"]


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> str:
    """To it, many of the objects look unknown."""
    path, bundle = tmp_path_factory.mktemp("model") / "tiny.safetensors", watched_bundle()
    told = bundle.warning_model()
    lower = tuple(threshold - 0.1 for threshold in told.unknown.alarm.thresholds)
    unknown = replace(told.unknown, alarm=replace(told.unknown.alarm, thresholds=lower))
    save_bundle(bundle.with_warnings(replace(told, unknown=unknown)), path)
    return str(path)


@pytest.fixture(scope="session")
def recordings(tmp_path_factory) -> Path:
    """Six bags of different length, each with its truth, by ids or by boxes: `track 2` is unknown."""
    folder = tmp_path_factory.mktemp("recordings")
    names = ("class 0", "class 1", None)
    spans = {f"track {index}": (TruthSpan(0, name),) for index, name in enumerate(names)}
    for seed in range(BAGS):
        write_scene(folder / f"drive{seed}", frames=4 + seed, seed=seed)
        truth = Truth(spans, "", ("class 0", "class 1"))
        if seed in (2, 3):
            truth = replace(truth, tracks={}, frames=dict(true_frames(4 + seed, names)))
        write_truth(truth, folder / f"drive{seed}.truth.json")
    return folder


def true_frames(frames, names):
    """Where `write_scene` has its objects, a little beside the boxes in the bag."""
    shown = [Shown(f"object {index}", name) for index, name in enumerate(names)]
    for index, camera in product(range(frames), ("left", "right")):
        boxes = [(22.0 + 30 * each + index, 61.0, 16.0 + index, 17.0 + index) for each in range(len(names))]
        yield (camera, START + index * STEP), TruthFrame(boxes, shown)


class Cluster:
    """`dask scheduler` and `dask worker --nworkers 2`, as on any machine."""

    def __init__(self, folder: Path) -> None:
        env = child_environment()
        dask = str(Path(sys.executable).with_name("dask"))
        file = folder / "scheduler.json"
        begin = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        self.scheduler = RosProcess(
            [dask, *begin, "--scheduler-file", str(file)], "scheduler", folder / "scheduler.log", env
        )
        wait_for(lambda: self.scheduler.check() or (file.exists() and file.read_text().endswith("}")))
        begin = ["worker", "--nworkers", "2", "--nthreads", "1", "--no-dashboard", "--local-directory"]
        self.workers = RosProcess(
            [dask, *begin, str(folder), "--scheduler-file", str(file)], "workers", folder / "workers.log", env
        )
        self.address = json.loads(file.read_text())["address"]

    def stop(self) -> None:
        for process in (self.workers, self.scheduler):
            process.stop()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    from distributed import Client

    with Client(cluster.address, timeout=60) as client:
        client.wait_for_workers(2, timeout=120)
    yield cluster
    cluster.stop()


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory, model, recordings, cluster) -> Path:
    """The results of a run that nobody disturbed; tests do not write to it."""
    out = tmp_path_factory.mktemp("undisturbed") / "fleet"
    done = command(model, recordings, out, "--cluster", cluster.address)
    assert done.returncode == 0, done.stderr
    shutil.copy(out / "run.json", out.parent)  # later runs, which find nothing to do, write their own
    return out


def words(model: str, *more: object) -> list[str]:
    start = [sys.executable, "-m", "lla_fusion_ros.cli.main", "replay"]
    return [*start, *map(str, more), "--bundle", model, *SETTINGS]


def command(model: str, recordings: Path, out: Path, *more: object) -> subprocess.CompletedProcess[str]:
    """`lla-fusion replay` of all bags, as a process."""
    line = words(model, recordings, "--truth", recordings, "--out", out, *more)
    return subprocess.run(line, capture_output=True, text=True, timeout=500, env=child_environment())


def copy_of(recordings: Path, place: Path) -> Path:
    return Path(shutil.copytree(recordings, place))
