"""Offline replay against a bare loop that only decodes, crops, forwards and takes the arg max."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch

from bench.timing import Spread
from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import CameraTopics, find_cameras
from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.images.crops import Pixels, cut_crops
from lla_fusion_ros.messages.detections import parse_detections
from lla_fusion_ros.messages.images import parse_compressed_image
from lla_fusion_ros.replay.replay import ReplayOptions, replay
from lla_fusion_ros.stream.stream_settings import StreamSettings

FRAMES_TOGETHER = 8  # as the replay does
PRECISIONS = ("int8", "float32")  # of the networks; the first is what `auto` means on an x86 CPU


def measure_replay(path: Path, bundle: Bundle, rounds: int) -> Iterator[dict[str, Any]]:
    """One record for each precision: views per second of wall time, the two loops in turns."""
    for precision in PRECISIONS:
        speed: dict[str, list[float]] = {"bare": [], "replay": []}
        for number in range(rounds):
            for name in ("bare", "replay") if number % 2 else ("replay", "bare"):
                with Bag(path) as bag:
                    wiring = find_cameras(bag.summary)
                    if name == "bare":
                        views, seconds = bare_loop(bag, tuple(wiring.cameras), bundle, precision)
                    else:
                        options = ReplayOptions(
                            stream=StreamSettings(identity="global"), device="cpu", precision=precision
                        )
                        done = replay(bag, wiring, bundle, options, [])
                        views, seconds = done.views, done.seconds
                speed[name].append(views / seconds)
        ratio = np.array(speed["replay"]) / np.array(speed["bare"])
        yield {
            "precision": precision,
            "cameras": len(wiring.cameras),
            "views": views,
            **Spread.of(speed["replay"]).record("views_per_s", 3),
            **Spread.of(speed["bare"]).record("bare_views_per_s", 3),
            **Spread.of(ratio).record("ratio_bare", 3),
        }


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
