"""What a soak run says about frames and growth."""

from __future__ import annotations

import numpy as np
import pytest

from bench.soak_result import balance, complaints, slopes


def samples(memory_per_hour: float = 0.0, noise: float = 0.5) -> list[dict[str, float]]:
    rng = np.random.default_rng(0)
    return [
        {
            "seconds": 5.0 * step,
            "memory_mb": 300 + memory_per_hour * 5 * step / 3600 + rng.normal(0, noise),
            "handles": 18,
            "threads": 15,
            "p50_ms": 20 + rng.normal(),
            "p95_ms": 40 + rng.normal(),
        }
        for step in range(1, 361)
    ]


def test_a_leak_is_found_with_its_size_and_noise_is_not_one():
    leak = slopes(samples(100.0))["memory_mb"]
    assert leak["per_hour"] == pytest.approx(100, rel=0.05) and not leak["flat"]
    assert leak["low"] < leak["per_hour"] < leak["high"]
    assert all(slope["flat"] for slope in slopes(samples(noise=3.0)).values())


def test_every_frame_is_accounted_for_or_missed():
    before = {"left": {"fused_frames": 10, "waiting_images": 1}, "right": {}}
    after = {
        "left": {"fused_frames": 100, "dropped_queue_full": 5, "waiting_images": 0},
        "right": {"fused_frames": 96, "dropped_images_lost": 4, "images_without_detections": 1},
    }
    assert balance(195, 180, before, after)["uncounted"] == 0
    missed = balance(198, 180, before, after)
    assert missed["uncounted"] == 3
    told = complaints({"balance": missed, "slopes": slopes(samples())})
    assert told == ["3 frames were lost without being counted"]
