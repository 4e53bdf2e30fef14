"""Offline replay against a bare loop that only decodes, crops, forwards and takes the arg max."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import CameraTopics, find_cameras
from lla_fusion_ros.bench.timing import Spread
from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.crops import Pixels, cut_crops
from lla_fusion_ros.replay.run import ReplayOptions, replay
from lla_fusion_ros.wire.detections import parse_detections
from lla_fusion_ros.wire.images import parse_compressed_image

FRAMES_TOGETHER = 8  # as the replay does


PRECISIONS = ("int8", "float32")  # of the networks; the first is what `auto` means on an x86 CPU


def bare_loop(
    bag: Bag, cameras: tuple[CameraTopics, ...], bundle: Bundle, precision: str
) -> tuple[int, float]:
    """The least that anybody would have to do: no pairing rules, no tracks, no checks.

    Views classified, and seconds of wall time without loading the networks.
    """
    ensemble, normalise = bundle.ensemble(eight_bits=precision == "int8"), bundle.normalisation()
    begun = time.monotonic()
    camera_of = {topic: c.name for c in cameras for topic in (c.image, c.detections)}
    images: dict[tuple[str, int], memoryview] = {}
    crops: list[np.ndarray] = []
    views = 0

    def classify() -> int:
        with torch.inference_mode():
            logits, _ = ensemble(normalise(torch.from_numpy(np.concatenate(crops))))
            best = logits.mean(dim=1).argmax(dim=1).numpy()
        crops.clear()
        return len(best)

    for message in bag.messages(camera_of.keys()):
        name = camera_of[message.topic]
        if message.type.endswith("CompressedImage"):
            compressed = parse_compressed_image(message.data)
            images[name, compressed.header.stamp] = compressed.data
            continue
        detections = parse_detections(message.data)
        data = np.frombuffer(images.pop((name, detections.header.stamp)), np.uint8)
        image = cv2.imdecode(data, cv2.IMREAD_COLOR)
        assert image is not None
        pixels = Pixels(image, "bgr")
        crops.append(cut_crops(pixels, detections.boxes, bundle.input_size, bundle.crop_margin))
        if len(crops) == FRAMES_TOGETHER:
            views += classify()
    views += classify() if crops else 0
    return views, time.monotonic() - begun


def measure_replay(path: Path, bundle: Bundle, rounds: int) -> Iterator[dict[str, Any]]:
    """Records of `replay`: views per second of wall time, and the ratio of CPU times, in turns."""
    for precision in PRECISIONS:
        yield _replay_record(path, bundle, rounds, precision)


def _replay_record(path: Path, bundle: Bundle, rounds: int, precision: str) -> dict[str, Any]:
    wall: dict[str, list[float]] = {"bare": [], "replay": []}
    cpu: dict[str, list[float]] = {"bare": [], "replay": []}
    views = {"bare": 0, "replay": 0}
    for number in range(rounds):
        for name in ("bare", "replay") if number % 2 else ("replay", "bare"):
            with Bag(path) as bag:
                wiring = find_cameras(bag.summary)
                begun = time.process_time()
                if name == "bare":
                    views[name], seconds = bare_loop(bag, tuple(wiring.cameras), bundle, precision)
                else:
                    options = ReplayOptions(device="cpu", precision=precision)
                    done = replay(bag, wiring, bundle, options, [])
                    views[name], seconds = done.views, done.seconds
                wall[name].append(views[name] / seconds)
                cpu[name].append((time.process_time() - begun) / views[name])
    ratio = np.array(wall["replay"]) / np.array(wall["bare"])
    return {
        "precision": precision,
        "cameras": len(wiring.cameras),
        "views": views["replay"],
        "bare_views": views["bare"],
        **Spread.of(wall["replay"]).record("views_per_s"),
        **Spread.of(wall["bare"]).record("bare_views_per_s"),
        **Spread.of(ratio).record("ratio_bare"),
        **Spread.of(np.array(cpu["replay"]) / np.array(cpu["bare"])).record("cpu_ratio_bare"),
        "clock": "wall time without loading for views per second; CPU time with loading for cpu_ratio_bare",
    }
