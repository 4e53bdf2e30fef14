"""The perception node over DDS against a node that only takes the arg max: drops, latency, CPU per view."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.drive import CAMERAS, OBJECTS, RATE
from bench.timing import Spread
from lla_fusion_ros.demo.processes import DemoError, Processes

NODES = {"plain": "bench.argmax_node", "perception": "lla_fusion_ros.ros perception"}
RATES = (1.0, 2.0, 4.0)


def measure_live(bag: Path, model: str, seconds: float, rounds: int) -> Iterator[dict[str, Any]]:
    """One record for each rate; the nodes take turns, so that both see the same machine."""
    runs: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for _ in range(rounds):
        for name in NODES:
            for rate, result in zip(RATES, _loaded(name, bag, model, seconds), strict=True):
                runs.setdefault((name, rate), []).append(result)
    for rate in RATES:
        plain, ours = runs["plain", rate], runs["perception", rate]
        ratios = [_cpu_per_view(a) / _cpu_per_view(b) for a, b in zip(ours, plain, strict=True)]
        yield {
            "frames_per_s": len(CAMERAS) * RATE * rate,
            "objects": OBJECTS,
            "frames": sum(run["sent"] for run in ours),
            "drops": sum(run["sent"] - run["answered"] for run in ours),
            "p50_ms": Spread.of([run["p50_ms"] for run in ours]).median,
            "p95_ms": Spread.of([run["p95_ms"] for run in ours]).median,
            "cpu_cores": round(sum(run["cpu_s"] for run in ours) / sum(run["seconds"] for run in ours), 2),
            "plain_drops": sum(run["sent"] - run["answered"] for run in plain),
            **Spread.of(ratios).record("cpu_ratio_plain", 3),
        }


def _loaded(name: str, bag: Path, model: str, seconds: float) -> list[dict[str, Any]]:
    """What the load says of one node at each of the rates."""
    cameras = f"cameras:=[{', '.join(CAMERAS)}]"
    settings = (cameras, f"model:={model}", "image_transport:=compressed", "identity:=global")
    arguments = ["--ros-args", *(word for setting in settings for word in ("-p", setting))]
    with tempfile.TemporaryDirectory() as logs, Processes(Path(logs)) as processes:
        node = processes.start(name, NODES[name], arguments)
        results = []
        for rate in RATES:
            words = [str(bag), "--cameras", *CAMERAS, "--rate", f"{rate:g}", "--seconds", f"{seconds:g}"]
            load = processes.start("load", "bench.load_node", [*words, "--pid", str(node.pid)], piped=True)
            out, _ = load.communicate()
            processes.check(name)
            if load.returncode:
                raise DemoError(f"the load node failed with exit code {load.returncode}")
            results.append(json.loads(out.strip().splitlines()[-1]))
        return results


def _cpu_per_view(run: dict[str, Any]) -> float:
    """CPU seconds of the node per view that it answered."""
    return float(run["cpu_s"]) / max(run["answered"] * OBJECTS, 1)
