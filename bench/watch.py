"""CPU of `lla-fusion watch --web` while 200 objects come at 10 Hz and one page is open.

    python -m bench.watch [--objects 200] [--rate 10] [--seconds 15]

A publisher of its own sends what a node with two cameras sends to a watcher; the page is a plain HTTP client.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from typing import Any
from urllib.request import urlopen

import psutil

NASTY = (
    "<img src=x onerror=alert(1)>",
    "\x1b[31mred\x1b[0m",
    "‮evil",
    "שלום עולם",
    "</script>&amp;",
    "a" * 60,
)
CLASSES = ("stop", "yield", "speed limit 50", "no entry", "priority road", "<b>bold</b>", "تحذير")


def publish(objects: int, rate: float, seconds: float) -> None:
    """Until it is killed, or the time is over."""
    import numpy as np
    import rclpy
    from diagnostic_msgs.msg import DiagnosticArray
    from rclpy.node import Node
    from rclpy.signals import SignalHandlerOptions
    from sensor_msgs.msg import Image

    from lla_fusion_ros.images.drawing import Label, draw_labels
    from lla_fusion_ros.messages.cdr import Header
    from lla_fusion_ros.messages.images import write_image
    from lla_fusion_ros.messages.status import Status, write_diagnostics

    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)  # ended from outside, and no word about it
    node = Node("fusion_in_place")
    sent = {
        topic: node.create_publisher(DiagnosticArray, topic, 10)
        for topic in ("/track_status", "/ood_warnings", "/diagnostics")
    }
    pictures = {
        camera: node.create_publisher(Image, f"/{camera}/annotated", 2) for camera in ("front", "left")
    }
    ids = [NASTY[i] if i < len(NASTY) else f"front/{i}" for i in range(objects)]
    random, frames, began = np.random.default_rng(0), 0, time.monotonic()
    while rclpy.ok() and time.monotonic() - began < seconds:
        stamp, camera = time.time_ns(), ("front", "left")[frames % 2]
        statuses = []
        for row, name in enumerate(ids):
            bad, strange = row % 17 == 1, row % 23 == 2
            p = float(np.clip(0.55 + 0.4 * np.sin(frames / 40 + row) + 0.05 * random.normal(), 0.05, 0.999))
            reason = "cannot_tell" if bad else "out_of_distribution" if strange else ""
            values = {
                "answer": "cannot tell" if bad else "unknown" if strange else "known",
                "top class": CLASSES[(row + (frames // 60 if row % 5 == 0 else 0)) % len(CLASSES)],
                "p": f"{p:.6f}", "error at most": f"{1.0 if reason else 1 - p:.6f}", "confidence": "0.95",
                "set": "any" if reason else "; ".join(CLASSES[: 1 + row % 2]), "coverage": "0.99",
                "entropy": f"{2 * (1 - p):.6f}", "familiarity": "0.51234", "identity": "0.99123",
                "agreement": "0.71230", "views per camera": f"front={frames // 2} left={frames // 2}",
                "members": "", "class changed": "no", "reason": reason,
            }  # fmt: skip
            statuses.append(
                Status(2 * strange or int(bad), f"track {name}", values["answer"], camera, values)
            )
        header = Header(stamp, camera)
        sent["/track_status"].publish(write_diagnostics(header, statuses))
        if frames % int(rate) == 0:
            told = {"rate": f"{rate / 2:.2f}", "dropped_queue_full": str(frames // 50)}
            about = {"fuser": "evidence_pool", "busy": "41%", "latency p50 ms": "38.1", "state": "active"}
            sent["/diagnostics"].publish(
                write_diagnostics(
                    header,
                    [
                        Status(0, "perception", "all cameras well", "", about),
                        Status(0, "perception: camera front", "well", "front", told),
                        Status(1, "perception: camera left", "lost 3 queue_full", "left", told),
                    ],
                )  # fmt: skip
            )
        if pictures[camera].get_subscription_count():
            image = np.full((540, 960, 3), 90, np.uint8)
            box = (300.0 + 3 * (frames % 100), 250.0, 90.0, 90.0)
            draw_labels(image, [Label(box, "front/7", (("stop", 0.93), ("yield", 0.05)))])
            pictures[camera].publish(write_image(header, image, "bgr8"))
        frames += 1
        time.sleep(max(began + frames / rate - time.monotonic(), 0))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--objects", type=int, default=200)
    parser.add_argument("--rate", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--publish", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.publish:
        publish(args.objects, args.rate, args.seconds)
        return 0
    here = {**os.environ, "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "PYTHONUNBUFFERED": "1"}
    here.setdefault("ROS_DOMAIN_ID", "77")
    size = ["--objects", str(args.objects), "--rate", str(args.rate), "--seconds", str(args.seconds + 60)]
    source = subprocess.Popen([sys.executable, "-m", "bench.watch", "--publish", *size], env=here)
    watch = subprocess.Popen(
        [sys.executable, "-m", "lla_fusion_ros.cli.main", "watch", "--web", "--port", "0"],
        env=here, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert watch.stderr is not None
        found = re.search(r"http://\S+?(?=,)", watch.stderr.readline())
        assert found is not None
        with urlopen(found[0] + "events", timeout=60) as page:
            while not (state := _next(page)) or len(state["objects"]) < args.objects:
                pass
            process, began, first, pages = psutil.Process(watch.pid), time.monotonic(), _frames(state), 0
            before = process.cpu_times()
            while time.monotonic() - began < args.seconds:
                state, pages = (new, pages + 1) if (new := _next(page)) else (state, pages)
            spent, after = time.monotonic() - began, process.cpu_times()
        cores = (after.user + after.system - before.user - before.system) / spent
        heard, sent = ((now - then) / spent for now, then in zip(_frames(state), first, strict=True))
        print(
            f"{args.objects} objects: {heard:.1f} of {sent:.1f} frames/s heard, "
            f"{pages / spent:.1f} states/s on the page, {cores:.2f} cores, "
            f"{process.memory_info().rss / 1e6:.0f} MB"
        )
    finally:
        for child in (watch, source):
            child.terminate()
            child.wait(20)
    return 0


def _frames(state: dict) -> tuple[int, int]:
    """Heard, and sent by then."""
    counts = [int(count) for each in state["objects"] for count in re.findall(r"front=(\d+)", each["views"])]
    return state["messages"], 2 * max(counts)


def _next(page: Any) -> dict:
    line = page.readline()
    return json.loads(line[6:]) if line.startswith(b"data: ") else {}


if __name__ == "__main__":
    sys.exit(main())
