"""The real node over real DDS against a plain arg-max node: drops, latency, CPU per view; start-up."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lla_fusion_ros.bench.bag import CAMERAS, OBJECTS, RATE
from lla_fusion_ros.bench.timing import Spread
from lla_fusion_ros.demo.processes import DemoError, Processes

NODES = {"plain": "lla_fusion_ros.ros.argmax_node", "perception": "lla_fusion_ros.ros.perception_node"}
RATES = {"auto": (1.0, 2.0, 4.0), "float32": (1.0,)}  # by precision of the networks, as users have it first
FEWER_CAMERAS = (1, 2, 4)
IMPORTS = {
    "torch": "torch",
    "library": "lla_fusion_ros.pipeline",
    "fusion_only": "lla_fusion_ros.engine",
    "perception_node": "lla_fusion_ros.ros.perception",
}


def measure_live(bag: Path, model: str, seconds: float, rounds: int) -> Iterator[dict[str, Any]]:
    """Records of the `live` section; the nodes take turns, so that both see the same machine."""
    runs: dict[tuple[str, str, float], list[dict[str, Any]]] = {}
    fewer: list[dict[str, Any]] = []
    for number in range(rounds):
        for precision, rates in RATES.items():
            for name in NODES:
                with tempfile.TemporaryDirectory() as logs, Processes(Path(logs)) as processes:
                    child = _start(processes, name, model, CAMERAS, precision)
                    for rate in rates:
                        result = _load(processes, bag, CAMERAS, rate, seconds, child.pid)
                        runs.setdefault((name, precision, rate), []).append(result)
        if number == 0:
            fewer = [_few_cameras(bag, model, count, seconds) for count in FEWER_CAMERAS]
    for precision, rates in RATES.items():
        for rate in rates:
            plain, ours = (runs[name, precision, rate] for name in ("plain", "perception"))
            yield {"precision": precision, **_compared(ours, plain, rate)}
    yield from ({"precision": "auto", **record} for record in fewer)


def _compared(ours: list[dict[str, Any]], plain: list[dict[str, Any]], rate: float) -> dict[str, Any]:
    """The summary of our runs, with what the plain node's say beside it."""
    ratios = [_cpu_per_view(a) / _cpu_per_view(b) for a, b in zip(ours, plain, strict=True)]
    theirs = _summary(plain, len(CAMERAS), rate)
    return {
        **_summary(ours, len(CAMERAS), rate),
        **Spread.of(ratios).record("cpu_ratio_plain"),
        **{f"plain_{key}": theirs[key] for key in ("drops", "p50_ms", "p95_ms", "cpu_ms_per_view")},
    }


def measure_startup(bag: Path, model: str, rounds: int) -> Iterator[dict[str, Any]]:
    """The `startup` record: from the start of the process to the first fused class; import times (wall)."""
    first = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as logs, Processes(Path(logs)) as processes:
            arguments = [str(bag), "--cameras", *CAMERAS, "--first"]
            load = processes.start("load", "lla_fusion_ros.ros.load_node", arguments, piped=True)
            assert load.stdout is not None
            load.stdout.readline()  # it has read the bag
            begun = time.time_ns()
            _start(processes, "perception", model, CAMERAS)
            first.append((json.loads(_last_line(processes, load))["first_answer"] - begun) / 1e9)
    record: dict[str, Any] = {**Spread.of(first).record("first_fused_class_s"), "clock": "wall time"}
    for name, module in IMPORTS.items():
        record[f"import_{name}_s"] = round(Spread.of([_import_time(module) for _ in range(rounds)]).median, 3)
    yield record


def _few_cameras(bag: Path, model: str, count: int, seconds: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as logs, Processes(Path(logs)) as processes:
        child = _start(processes, "perception", model, CAMERAS[:count])
        return _summary([_load(processes, bag, CAMERAS[:count], 1.0, seconds, child.pid)], count, 1.0)


def _start(
    processes: Processes, name: str, model: str, cameras: Sequence[str], precision: str = "auto"
) -> subprocess.Popen[str]:
    listed = "[" + ", ".join(cameras) + "]"
    arguments = ["--ros-args", "-p", f"cameras:={listed}", "-p", f"model:={model}"]
    arguments += ["-p", "image_transport:=compressed", "-p", f"precision:={precision}"]
    return processes.start(name, NODES[name], arguments)


def _load(
    processes: Processes, bag: Path, cameras: Sequence[str], rate: float, seconds: float, pid: int
) -> dict[str, Any]:
    arguments = [str(bag), "--cameras", *cameras, "--rate", f"{rate:g}"]
    arguments += ["--seconds", f"{seconds:g}", "--pid", str(pid)]
    load = processes.start("load", "lla_fusion_ros.ros.load_node", arguments, piped=True)
    result: dict[str, Any] = json.loads(_last_line(processes, load))
    return result


def _last_line(processes: Processes, child: subprocess.Popen[str]) -> str:
    out, _ = child.communicate()
    if child.returncode:
        processes.check("load")
        raise DemoError("the load node failed")
    return out.strip().splitlines()[-1]


def _cpu_per_view(run: dict[str, Any]) -> float:
    """CPU seconds of the node per view that it answered."""
    return float(run["cpu_s"]) / max(run["answered"] * OBJECTS, 1)


def _summary(runs: list[dict[str, Any]], cameras: int, rate: float) -> dict[str, Any]:
    return {
        "rate": rate,
        "cameras": cameras,
        "frames_per_s": cameras * RATE * rate,
        "objects": OBJECTS,
        "frames": sum(run["sent"] for run in runs),
        "drops": sum(run["sent"] - run["answered"] for run in runs),
        "p50_ms": Spread.of([run["p50_ms"] for run in runs]).median,
        "p95_ms": Spread.of([run["p95_ms"] for run in runs]).median,
        "cpu_ms_per_view": round(1e3 * Spread.of([_cpu_per_view(run) for run in runs]).median, 4),
        "cpu_cores": round(sum(run["cpu_s"] for run in runs) / sum(run["seconds"] for run in runs), 3),
    }


def _import_time(module: str) -> float:
    script = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    with tempfile.TemporaryDirectory() as logs:
        environment = Processes(Path(logs)).environment
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True
        )
    return float(done.stdout.split()[-1])
