"""What a frame costs in the engine (tracks, fuser, warnings) against the networks' forward pass."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import cv2
import numpy as np

from bench.timing import interleaved
from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.engine.engine import FusionEngine, Observation
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.signworld import CLASS_NAMES
from lla_fusion_ros.signworld.signs import face_of
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.views import Views

LENGTHS, TRACKS = (10, 1000), (1, 10)
STEPS = 10  # frames of one turn
CYCLE = 30  # different frames, shown over and over
FRAME = 100_000_000  # nanoseconds


def measure_fusion(
    bundle: Bundle,
    rounds: int,
    lengths: tuple[int, ...] = LENGTHS,
    tracks: tuple[int, ...] = TRACKS,
) -> Iterator[dict[str, Any]]:
    """One record for each number of tracks a frame and each length; forward pass and engine take turns."""
    networks = Classifier(bundle, "cpu", "float32")
    for count in tracks:
        crops = sign_crops(CYCLE, count, bundle.input_size)
        views = networks(crops)
        frames = [views.take(slice(start, start + count)) for start in range(0, len(crops), count)]
        engines = {f"L{length}": EngineAt(bundle, frames, length) for length in lengths}
        timed = interleaved({"forward": partial(networks, crops[:count]), **engines}, rounds, least=0.0)
        for name, engine in engines.items():
            yield {
                "fuser": bundle.meta.default_fuser,
                "tracks": count,
                "L": int(name[1:]),
                **timed.ratio(name, "forward", calls=STEPS).record("ratio_forward", 3),
                "us_per_frame": round(1e6 * timed.cost(name).median / STEPS, 1),
                "forward_us": round(1e6 * timed.cost("forward").median, 1),
                "bytes_per_track": engine.bytes_per_track(),
            }


def sign_crops(frames: int, tracks: int, size: int) -> np.ndarray:
    """Signs with noise, a track keeping its class.  [frames * tracks, size, size, 3] uint8"""
    rng = np.random.default_rng(0)
    clean = []
    for track in range(tracks):
        face = cv2.resize(face_of(CLASS_NAMES[track % len(CLASS_NAMES)]), (size, size)).astype(np.float32)
        clean.append(face[..., :3] + 110.0 * (1.0 - face[..., 3:] / 255.0))  # on grey
    noise = rng.normal(0.0, 8.0, (frames, tracks, size, size, 3))
    return np.clip(np.stack(clean) + noise, 0, 255).astype(np.uint8).reshape(-1, size, size, 3)


class EngineAt:
    """STEPS frames through an engine whose tracks have a given length."""

    def __init__(self, bundle: Bundle, frames: list[Views], length: int) -> None:
        self._frames, self._length, self._step = frames, length, 0
        self._ids = tuple(f"{number:04d}" for number in range(len(frames[0])))
        # lengths stay what they should be
        self._engine = FusionEngine(bundle, FusionSettings(restart_on_switch=False, max_age=0.0))
        self._grow()

    def prepare(self) -> None:
        """Short tracks begin again, so that they stay short."""
        if self._length <= STEPS:
            self._engine.reset()
            self._grow()

    def __call__(self) -> None:
        for _ in range(STEPS):
            self._frame()

    def bytes_per_track(self) -> int:
        return self._engine.bytes_per_track()

    def _grow(self) -> None:
        for _ in range(self._length - 1):
            self._frame()

    def _frame(self) -> None:
        self._step += 1
        views = self._frames[self._step % len(self._frames)]
        self._engine.update(Observation("camera", self._step * FRAME, self._ids, views))
