"""Run a node at a chosen load for a chosen time, and tell whether it grows, slows or loses frames.

`perception` as users get it: boxes without ids, which it tracks, cameras joined by geometry, networks in ONNX
Runtime, and `lla-fusion watch --web` with an open page. Or `class_fusion` alone (--fusion-only) with 1,000
objects alive, of which each is soon replaced by one with a higher id. Everything runs on one core; the rate
is the one at which the node takes a share --load of what the others leave of it, found in the first minute.

Then the node is stopped for some seconds, so that every queue on the way has been full once and has the
memory it will ever have; later stalls of the machine then cannot be taken for a leak. Exit code 0 only where
memory, handles, threads and latency are flat and every frame is accounted for.

Example:
    make soak ARGS="--minutes 2"
    make soak ARGS="--minutes 60 --json soak.json --figure docs/images/robustness-soak.png"
    make soak ARGS="--fusion-only --minutes 30 --json soak_fusion.json"
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import psutil
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from bench.drive import CAMERAS, OBJECTS, RATE, drive_bag
from bench.machine import dds_profile, machine
from bench.price import in_onnx
from bench.scene import camera_names, write_views
from bench.soak_result import balance, complaints, cpu_seconds, draw_soak, slopes
from lla_fusion_ros import __version__
from lla_fusion_ros.bundle import Bundle, load_bundle, save_bundle
from lla_fusion_ros.bundle.resources import find_model
from lla_fusion_ros.demo.processes import Processes
from lla_fusion_ros.types.errors import LlaFusionError

BAG_SECONDS = 4.0  # of the drive, which is played over and over
STALL = 4.0  # seconds
ALIVE, LIVES = 1000, 2  # objects of --fusion-only, and how often each camera sees one
PATIENCE = 60.0  # seconds for the watcher's page


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


def open_page(log: Path) -> Thread:
    """Do what a browser does with the page that a watcher announces in its log."""
    give_up = time.monotonic() + PATIENCE
    while not (found := re.search(r"http://\S+?(?=,)", log.read_text())):
        if time.monotonic() > give_up:
            raise LlaFusionError(f"no page is served; see {log}")
        time.sleep(0.1)
    thread = Thread(target=_look, args=(found[0],), daemon=True)
    thread.start()
    return thread


def _look(address: str) -> None:
    """Every state, and with it the newest pictures, until the watcher ends."""
    with suppress(OSError), urlopen(address + "events", timeout=PATIENCE) as page:
        for line in page:
            for camera in json.loads(line[6:])["cameras"] if line.startswith(b"data: ") else ():
                with suppress(OSError):  # there is none yet
                    urlopen(f"{address}picture?camera={quote(camera['name'])}", timeout=PATIENCE).read()


def sample(process: psutil.Process, prefix: str) -> dict[str, float]:
    """What must not grow."""
    with process.oneshot():
        return {
            f"{prefix}memory_mb": round(process.memory_info().rss / 1e6, 3),
            f"{prefix}handles": process.num_fds(),
            f"{prefix}threads": process.num_threads(),
        }


@dataclass(frozen=True)
class Case:
    """What is soaked.

    Attributes:
        objects: alive for `class_fusion`, in each frame for `perception`.
        settings: parameters of the node.
        watch: with an open page of the watcher.
    """

    node: str
    cameras: Sequence[str]
    objects: int
    bag: Path
    settings: Sequence[str]
    watch: bool


def default_case(bundle: Bundle, cameras: int, place: Path) -> Case:
    save_bundle(in_onnx(bundle), place / "exported.safetensors")
    settings = [f"model:={place / 'exported.safetensors'}", "engine:=onnxruntime"]
    bag = drive_bag(BAG_SECONDS, cameras)
    return Case("perception", CAMERAS[:cameras], OBJECTS, bag, settings, watch=True)


def fusion_case(bundle: Bundle, place: Path) -> Case:
    cameras = camera_names(2)
    bag = write_views(place / "views", bundle, len(cameras), ALIVE, LIVES)
    settings = [f"model:={Path(bundle.source).absolute()}"]
    return Case("class_fusion", cameras, ALIVE, bag, settings, watch=False)


def soak(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Samples, slopes and the balance of one run."""
    begun_on, samples, told = machine(), list[dict[str, Any]](), dict[str, Any]()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with (
        tempfile.TemporaryDirectory() as folder,
        Processes(Path(folder), options.domain) as processes,
        Progress(*columns, console=console, disable=not console.is_terminal) as bar,
    ):
        task = bar.add_task("preparing", total=options.minutes * 60)
        processes.environment |= dds_profile()
        bundle, place = load_bundle(find_model(options.model)), Path(folder)
        case = (
            fusion_case(bundle, place)
            if options.fusion_only
            else default_case(bundle, options.cameras, place)
        )
        settings = (*case.settings, f"cameras:=[{', '.join(case.cameras)}]")
        words = [word for setting in settings for word in ("-p", setting)]
        child = processes.start("node", f"lla_fusion_ros.ros {case.node}", ["--ros-args", *words])
        node = psutil.Process(child.pid)
        watched, names, page = {"": node}, ["node"], None
        if case.watch:
            child = processes.start("watch", "lla_fusion_ros.cli.main", ["watch", "--web", "--port", "0"])
            watched["watch_"] = psutil.Process(child.pid)
            names.append("watch")
            page = open_page(place / "watch.log")
        arguments = {
            "node": node.pid,
            "load": options.load,
            "seconds": options.minutes * 60,
            "every": options.every,
            "objects": case.objects,
        }
        words = [str(case.bag), *(f"--{name}={value}" for name, value in arguments.items())]
        for line in lines_of(processes.start("load", "bench.soak_load_node", words, piped=True)):
            processes.check(*names)
            if page is not None and not page.is_alive():
                raise LlaFusionError("the watcher has closed its page")
            if "seconds" not in line:
                told |= line
                continue
            if not samples:
                stall(node)
            line |= cpu_seconds(node)
            for prefix, process in watched.items():
                line |= sample(process, prefix)
            samples.append(line)
            text = f"{line['memory_mb']:.1f} MB, p95 {line['p95_ms']:.0f} ms, {line['answered']} frames"
            bar.update(task, completed=line["seconds"], description=text)
        if "after" not in told:
            processes.check(*names, "load")
            raise LlaFusionError("the load ended without a result")
    first, final = samples[1], samples[-1]  # after the stall
    seconds, own, others = (final[key] - first[key] for key in ("seconds", "cpu_s", "others_s"))
    return {
        "version": __version__,
        "machine": begun_on,
        "load": {
            "node": case.node,
            "cameras": len(case.cameras),
            "rate": round(RATE * told["speed"], 2),
            "objects": case.objects,
            "minutes": options.minutes,
            "model": options.model,
            "core": round(own / seconds, 3),
            "share": round(own / (seconds - others), 3),
            "highest_id": max(each["highest_id"] for each in samples),
            "joins": told["joins"],
        },
        "balance": balance(final["sent"], final["answered"], told["before"], told["after"]),
        "slopes": slopes(samples),
        "samples": samples,
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0, help="how long to run (%(default)g)")
    parser.add_argument("--load", type=float, default=0.8, help="share of what it can get (%(default)g)")
    parser.add_argument(
        "--cameras", type=int, choices=range(1, 7), default=2, help="of the drive (%(default)s)"
    )
    parser.add_argument("--fusion-only", action="store_true", help="`class_fusion` with 1,000 objects")
    parser.add_argument("--model", default="signworld", help="model file or name (%(default)s)")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between samples (%(default)g)")
    parser.add_argument("--domain", type=int, help="ROS domain (one at random)")
    parser.add_argument("--json", type=Path, help="write samples, slopes and balance here")
    parser.add_argument("--figure", type=Path, help="draw the samples here (needs matplotlib)")
    options = parser.parse_args(arguments)
    if options.minutes * 60 < 4 * options.every:
        parser.error("--minutes must hold at least four samples")
    console = Console(highlight=False)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the nodes end with us, whoever ends us
    try:
        result = soak(options, console)
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
    for name, found in result["slopes"].items():
        console.print(
            f"{name:15} {found['level']:10.2f} {found['per_hour']:+10.3f} an hour "
            f"[{found['low']:+.3f}, {found['high']:+.3f}]"
        )
    for part in ("load", "balance"):
        console.print(", ".join(f"{key} {value}" for key, value in result[part].items() if value))
    wrong = complaints(result)
    for sentence in wrong:
        console.print(f"soak: {sentence}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
