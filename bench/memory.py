"""Peak memory of a replay with all its outputs against the length of the bag: it must not grow."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from lla_fusion_ros.bags.writer import BagWriter
from lla_fusion_ros.errors import LlaFusionError
from lla_fusion_ros.wire.cdr import Header
from lla_fusion_ros.wire.contract import COMPRESSED_IMAGE, DETECTIONS
from lla_fusion_ros.wire.detections import write_detections
from lla_fusion_ros.wire.images import write_compressed_image

RATE = 10
TRACK_LENGTH = 60  # frames after which an object has been passed and its id is not seen again
_CHILD = """
import json, resource, sys
from pathlib import Path
from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.replay.outputs import Wanted, replay_to_folder
from lla_fusion_ros.replay.run import ReplayOptions
bag, bundle, out = map(Path, sys.argv[1:])
outcome = replay_to_folder(bag, load_bundle(bundle), out, ReplayOptions(), Wanted())
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"views": outcome.result.views, "peak_mb": round(peak)}))
"""


def write_long_bag(path: Path, seconds: float, objects: int) -> None:
    """Two cameras; new objects come all the time, as on a road."""
    random = np.random.default_rng(0)
    noise = random.integers(0, 256, (480, 640, 3), np.uint8)
    pictures = [
        cv2.imencode(".jpg", cv2.GaussianBlur(np.roll(noise, 40 * shift, 1), (0, 0), 4))[1].tobytes()
        for shift in range(16)
    ]
    with BagWriter(path) as writer:
        for camera in ("left", "right"):
            writer.add(f"/{camera}/image/compressed", COMPRESSED_IMAGE)
            writer.add(f"/{camera}/detections", DETECTIONS)
        for step in range(round(seconds * RATE)):
            stamp = 10**18 + round(step * 1e9 / RATE)
            ids = [f"{index}/{(step + 7 * index) // TRACK_LENGTH}" for index in range(objects)]
            boxes = np.zeros((objects, 5))
            boxes[:, 0] = np.linspace(80, 560, objects)
            boxes[:, 1] = 240
            boxes[:, 3:] = 30 + step % TRACK_LENGTH
            for camera in ("left", "right"):
                header = Header(stamp, camera)
                image = write_compressed_image(header, pictures[step % len(pictures)], "jpeg")
                writer.write(f"/{camera}/image/compressed", stamp, image)
                writer.write(f"/{camera}/detections", stamp, write_detections(header, ids, boxes))


def measure_memory(bundle: Path, seconds: float, factor: float, objects: int = 4) -> Iterator[dict[str, Any]]:
    """Records of a bag of so many seconds and of one that is `factor` times as long."""
    with tempfile.TemporaryDirectory() as folder:
        for length in (seconds, factor * seconds):
            yield _replayed(length, objects, bundle, Path(folder))


def _replayed(seconds: float, objects: int, bundle: Path, folder: Path) -> dict[str, Any]:
    """Replay a bag of that length in a fresh process."""
    bag = folder / f"bag_{seconds:g}"
    write_long_bag(bag, seconds, objects)
    command = [sys.executable, "-c", _CHILD, str(bag), str(bundle), str(folder / f"out_{seconds:g}")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise LlaFusionError(f"the replay of a bag of {seconds:g} s failed: {done.stderr}")
    decoded = seconds * RATE * 2 * 640 * 480 * 3 / 1e6
    return {"bag_seconds": seconds, "decoded_mb": decoded, **json.loads(done.stdout.splitlines()[-1])}
