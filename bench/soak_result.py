"""What a soak run says: where every frame went, and whether anything grows; as numbers and as a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import theilslopes

# name -> unit; what must not grow. Latency depends on the machine and its other guests: told, not judged.
MEASURED = {"memory_mb": "MB", "handles": "", "threads": "", "p50_ms": "ms", "p95_ms": "ms"}
JUDGED = ("memory_mb", "handles", "threads")
FLAT = 0.01  # a growth over the whole run below this share of the level is none
BLOCK = 60.0  # seconds; a tenth of a run shorter than ten minutes
SETTLE = 0.1  # share of the run, at most two minutes, in which pools and caches fill
# Where a received image can end. `unused_frames` are those of which every object was dropped with a reason.
ENDS = (
    "fused_frames",
    "unused_frames",
    "dropped_queue_full",
    "dropped_bad_image",
    "images_without_detections",
    "waiting_images",
    "waiting_frames",
)


def balance(sent: int, answered: int, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, int]:
    """Frames sent = fused + counted as lost + uncounted, over all cameras; `uncounted` should be 0."""
    total: dict[str, int] = {}
    for camera, counters in after.items():
        for key, value in counters.items():
            total[key] = total.get(key, 0) + value - before.get(camera, {}).get(key, 0)
    lost_by_dds = total.get("dropped_images_lost", 0)
    ends = {key: total.get(key, 0) for key in ENDS}
    counted = sum(ends.values()) + lost_by_dds
    return {
        "sent": sent,
        "answered": answered,
        **ends,
        "images_lost_by_dds": lost_by_dds,
        "detections_lost_by_dds": total.get("dropped_detections_lost", 0),
        "internal_errors": total.get("dropped_internal_error", 0),
        "uncounted": sent - counted,
    }


def slopes(samples: Sequence[Mapping[str, float]]) -> dict[str, dict[str, Any]]:
    """Growth per hour of everything measured, after the settling: Theil-Sen with its 95% interval.

    It runs over medians of minutes: samples of a few seconds hang together (a batch in work holds its
    memory), and taking them for independent ones would make the interval too narrow.
    """
    length = samples[-1]["seconds"]
    settled = [sample for sample in samples if sample["seconds"] >= min(SETTLE * length, 120.0)]
    seconds = np.array([sample["seconds"] for sample in settled])
    block = min(BLOCK, length / 10)
    blocks, of_sample = np.unique(seconds // block, return_inverse=True)
    hours = (blocks + 0.5) * block / 3600.0
    found = {}
    for name, unit in MEASURED.items():
        every = np.array([sample[name] for sample in settled], float)
        values = np.array([np.median(every[of_sample == number]) for number in range(len(blocks))])
        good = np.isfinite(values)
        slope, _, low, high = theilslopes(values[good], hours[good], 0.95)
        level = float(np.median(values[good]))
        growth = slope * (hours[-1] - hours[0])
        found[name] = {
            "unit": unit,
            "level": round(level, 3),
            "per_hour": round(float(slope), 4),
            "low": round(float(low), 4),
            "high": round(float(high), 4),
            "flat": bool(low <= 0 or growth <= FLAT * level),
        }
    return found


def complaints(result: Mapping[str, Any]) -> list[str]:
    """What is wrong, in sentences."""
    wrong = []
    if result["balance"]["uncounted"]:
        wrong.append(f"{result['balance']['uncounted']} frames were lost without being counted")
    if result["balance"]["internal_errors"]:
        wrong.append(f"{result['balance']['internal_errors']} internal errors")
    for name in JUDGED:
        slope = result["slopes"][name]
        if not slope["flat"]:
            wrong.append(f"{name} grows by {slope['per_hour']:g} {slope['unit']} an hour")
    return wrong


def draw_soak(samples: Sequence[Mapping[str, float]], path: Path) -> None:
    """Four small panels over the minutes of the run."""
    from lla_fusion_ros.lab.plots import COLOURS, figure  # matplotlib: only for the figure

    minutes = [sample["seconds"] / 60 for sample in samples]
    with figure(path, 1, 4, 12.0, 2.8) as axes:
        memory, handles, latency, frames = axes[0]
        for axis, title, keys in (
            (memory, "resident memory, MB", ("memory_mb",)),
            (handles, "handles and threads", ("handles", "threads")),
            (latency, "latency, ms: median and 95%", ("p50_ms", "p95_ms")),
        ):
            for colour, key in zip(COLOURS, keys, strict=False):
                axis.plot(minutes, [sample[key] for sample in samples], color=colour, label=key)
            axis.set_title(title)
            if len(keys) > 1:
                axis.legend()
        rates = [
            (after["answered"] - before["answered"]) / max(after["seconds"] - before["seconds"], 1e-9)
            for before, after in zip(samples, samples[1:], strict=False)
        ]
        frames.plot(minutes[1:], rates, color=COLOURS[0])
        frames.set_title("frames fused a second")
        for axis in (memory, handles, latency, frames):
            axis.set_xlabel("minutes")
            axis.set_ylim(bottom=0)
