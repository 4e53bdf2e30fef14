"""Run the perception node at full load for a chosen time, and tell whether it grows, slows or loses frames.

Six cameras at 10 Hz with 20 objects each, 640 x 480, JPEG, over DDS: the load of the benchmark.
At the beginning the node is stopped for some seconds, so that every queue on the way has been full once and
has the memory it will ever have; later stalls of the machine then cannot be taken for a leak.
Exit code 0 only where memory, handles and threads are flat and every frame is accounted for.

Example:
    make soak ARGS="--minutes 2"
    make soak ARGS="--minutes 30 --json soak.json --figure docs/images/robustness-soak.png"
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from bench.drive import CAMERAS, OBJECTS, RATE, six_camera_bag
from bench.machine import machine
from bench.soak_result import MEASURED, balance, complaints, draw_soak, slopes
from lla_fusion_ros import __version__
from lla_fusion_ros.demo.processes import Processes
from lla_fusion_ros.types.errors import LlaFusionError

BAG_SECONDS = 4.0  # played over and over; the bench's own, so that it is rendered once
STALL = 4.0  # seconds
NODE, LOAD = "lla_fusion_ros.ros perception", "bench.soak_load_node"


def lines_of(child: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """What the load tells, as it tells it."""
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith("{"):
            yield json.loads(line)


def stall(process: psutil.Process) -> None:
    """Keep a process from running for a while."""
    process.suspend()
    try:
        time.sleep(STALL)
    finally:
        process.resume()


def soak(minutes: float, model: str, threads: int, every: float, console: Console) -> dict[str, Any]:
    """Samples, slopes and the balance of one run."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    samples: list[dict[str, float]] = []
    with (
        tempfile.TemporaryDirectory() as logs,
        Processes(Path(logs)) as processes,
        Progress(*columns, console=console, disable=not console.is_terminal) as bar,
    ):
        task = bar.add_task("rendering the drive", total=1.0)
        bag = six_camera_bag(BAG_SECONDS, lambda done, all_: bar.update(task, completed=done, total=all_))
        bar.update(task, description="starting", completed=0.0, total=minutes * 60)
        cameras = "[" + ", ".join(CAMERAS) + "]"
        chosen = (
            f"cameras:={cameras}",
            "identity:=global",
            f"model:={model}",
            f"threads:={threads}",
            "image_transport:=compressed",
        )
        settings = [word for setting in chosen for word in ("-p", setting)]
        node = processes.start("perception", NODE, ["--ros-args", *settings])
        watched = psutil.Process(node.pid)
        arguments = [
            str(bag),
            "--seconds",
            f"{minutes * 60:g}",
            "--every",
            f"{every:g}",
        ]
        load = processes.start("load", LOAD, arguments, piped=True)
        last: dict[str, Any] = {}
        for line in lines_of(load):
            processes.check("perception")
            if "after" in line:
                last = line
                break
            if not samples:
                stall(watched)
            cpu = watched.cpu_times()
            with watched.oneshot():
                line |= {
                    "memory_mb": round(watched.memory_info().rss / 1e6, 3),
                    "handles": watched.num_fds(),
                    "threads": watched.num_threads(),
                    "cpu_s": round(cpu.user + cpu.system, 2),
                }
            samples.append(line)
            text = f"{line['memory_mb']:.1f} MB, p95 {line['p95_ms']:.0f} ms, {line['answered']} frames"
            bar.update(task, completed=line["seconds"], description=text)
        if not last:
            processes.check("perception", "load")
            raise LlaFusionError("the load ended without a result")
    return {
        "version": __version__,
        "machine": machine(),
        "load": {
            "cameras": len(CAMERAS),
            "rate": RATE,
            "objects": OBJECTS,
            "minutes": minutes,
            "model": model,
        },
        "balance": balance(
            int(samples[-1]["sent"]), int(samples[-1]["answered"]), last["before"], last["after"]
        ),
        "slopes": slopes(samples),
        "samples": samples,
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0, help="how long to run (default 30)")
    parser.add_argument("--model", default="signworld", help="model file or name (default signworld)")
    parser.add_argument("--threads", type=int, default=1, help="the node's parameter `threads` (default 1)")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between samples (default 5)")
    parser.add_argument("--json", type=Path, help="write samples, slopes and balance here")
    parser.add_argument("--figure", type=Path, help="draw the samples here (needs matplotlib)")
    options = parser.parse_args(arguments)
    if options.minutes * 60 < 4 * options.every:
        parser.error("--minutes must hold at least four samples")
    console = Console(highlight=False)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the nodes end with us, whoever ends us
    try:
        result = soak(options.minutes, options.model, options.threads, options.every, console)
    except KeyboardInterrupt:
        console.print("stopped; the nodes have been ended")
        return 130
    except LlaFusionError as error:
        console.print(f"soak: {error}")
        return 1
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    if options.figure:
        draw_soak(result["samples"], options.figure)
    for name in MEASURED:
        found = result["slopes"][name]
        console.print(
            f"{name:10} {found['level']:10.2f} {found['per_hour']:+10.3f} an hour "
            f"[{found['low']:+.3f}, {found['high']:+.3f}]"
        )
    console.print(", ".join(f"{key} {value}" for key, value in result["balance"].items() if value))
    wrong = complaints(result)
    for sentence in wrong:
        console.print(f"soak: {sentence}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
