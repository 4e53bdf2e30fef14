#!/usr/bin/env python3
"""Time the sign world and the degradations: the numbers of docs/signworld.md and docs/datasets.md.

Counts the processor time of one thread, so that other work on the machine matters less.

Example:
    python tools/time_data.py
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import cv2
import numpy as np

from lla_fusion_ros.datasets import apply_plan, augmentation_plan, cut, load_dataset
from lla_fusion_ros.signworld import demo_drive, six_camera_drive


def milliseconds(work: Callable[[], object], count: int) -> float:
    """Processor time per item of work that handles `count` items, after a first run to warm up."""
    work()
    start = time.process_time()
    work()
    return 1e3 * (time.process_time() - start) / count


def main() -> int:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    cv2.setNumThreads(1)
    demo, six = demo_drive(), six_camera_drive()
    tracks = load_dataset("signworld", tracks=34)
    crops = cut(tracks, size=48, margin=0.1, border=12)
    rng = np.random.default_rng(0)

    def augment() -> None:
        apply_plan(crops.images, crops.border, augmentation_plan(len(crops), rng), rng)

    rows = (
        (
            "frame of the demo, 640x480",
            lambda: [demo.frame(step, step % 2) for step in range(0, 280, 14)],
            20,
        ),
        ("frame of the six-camera drive", lambda: [six.frame(10, camera) for camera in range(6)], 6),
        ("frame of a training track", lambda: load_dataset("signworld", tracks=34), 34 * 50),
        ("augmented crop, 48 px", augment, len(crops)),
    )
    for name, work, count in rows:
        print(f"{name:32s} {milliseconds(work, count):8.2f} ms", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
