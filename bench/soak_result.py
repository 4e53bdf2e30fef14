"""What a soak run says: where every frame went, and whether anything grows; as numbers and as a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from scipy.stats import theilslopes

# name -> unit, and the growth over the whole run, as a share of the level, below which it is flat. Latency
# depends on the machine and its other guests, too.
MEASURED = {
    "memory_mb": ("MB", 0.01),
    "handles": ("", 0.01),
    "threads": ("", 0.01),
    "p50_ms": ("ms", 0.1),
    "p95_ms": ("ms", 0.1),
    "watch_memory_mb": ("MB", 0.01),
    "watch_handles": ("", 0.01),
    "watch_threads": ("", 0.01),
}
BLOCK = 60.0  # seconds; a tenth of a run shorter than ten minutes
SETTLE = 0.1  # share of the run, at most two minutes, in which pools and caches fill
# Where a frame, an image or its views, can end. Of `unused_frames` every object was dropped with a reason.
ENDS = (
    "fused_frames",
    "unused_frames",
    "dropped_queue_full",
    "dropped_bad_image",
    "dropped_bad_embeddings",
    "images_without_detections",
    "dropped_views_without_embeddings",
    "waiting_images",
    "waiting_views",
    "waiting_frames",
)
ANSWERED, SLOWER = 0.95, 0.8  # a smaller share of answers than this asks for fewer frames
LOST = ("dropped_images_lost", "dropped_views_lost")


def cpu_seconds(node: psutil.Process) -> dict[str, float]:
    """What a node has taken, and the other processes of the soak."""
    parent = node.parent()
    assert parent is not None
    taken = {}
    for process in (parent, *parent.children()):
        times = process.cpu_times()
        taken[process.pid] = times.user + times.system
    own = taken.pop(node.pid)
    return {"cpu_s": round(own, 2), "others_s": round(sum(taken.values()), 2)}


def faster(own: float, others: float, answered: float, load: float) -> float:
    """By which factor to play faster, for the node to take a share `load` of what others leave of a core.

    own, others: shares of the core, both of which grow with the speed. Where frames are lost that does not
    hold, and there is too much of them.
    """
    if answered < ANSWERED:
        return SLOWER
    return float(np.clip(load / max(own + load * others, 0.01), 0.5, 2.0))


def balance(sent: int, answered: int, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, int]:
    """Frames sent = fused + counted as lost + uncounted, over all cameras; `uncounted` should be 0."""
    total: dict[str, int] = {}
    for camera, counters in after.items():
        for key, value in counters.items():
            total[key] = total.get(key, 0) + value - before.get(camera, {}).get(key, 0)
    lost_by_dds = sum(total.get(key, 0) for key in LOST)
    ends = {key: total.get(key, 0) for key in ENDS}
    counted = sum(ends.values()) + lost_by_dds
    return {
        "sent": sent,
        "answered": answered,
        **ends,
        "lost_by_dds": lost_by_dds,
        "internal_errors": total.get("dropped_internal_error", 0),
        "uncounted": sent - counted,
    }


def _settled(samples: Sequence[Mapping[str, float]]) -> list[Mapping[str, float]]:
    begin = min(SETTLE * samples[-1]["seconds"], 120.0)
    return [sample for sample in samples if sample["seconds"] >= begin]


def slopes(samples: Sequence[Mapping[str, float]]) -> dict[str, dict[str, Any]]:
    """Growth per hour of everything measured, after the settling: Theil-Sen with its 95% interval.

    It runs over medians of minutes: samples of a few seconds hang together (a batch in work holds its
    memory), and taking them for independent ones would make the interval too narrow.
    """
    settled = _settled(samples)
    seconds = np.array([sample["seconds"] for sample in settled])
    block = min(BLOCK, seconds[-1] / 10)
    blocks, of_sample = np.unique(seconds // block, return_inverse=True)
    hours = (blocks + 0.5) * block / 3600.0
    found = {}
    for name, (unit, allowed) in MEASURED.items():
        if name not in samples[0]:
            continue
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
            "flat": bool(low <= 0 or growth <= allowed * level),
        }
    return found


def complaints(result: Mapping[str, Any]) -> list[str]:
    """What is wrong, in sentences."""
    wrong = []
    if result["balance"]["uncounted"]:
        wrong.append(f"{result['balance']['uncounted']} frames were lost without being counted")
    if result["balance"]["internal_errors"]:
        wrong.append(f"{result['balance']['internal_errors']} internal errors")
    for name, slope in result["slopes"].items():
        if not slope["flat"]:
            wrong.append(f"{name} grows by {slope['per_hour']:g} {slope['unit']} an hour")
    return wrong


def draw_soak(samples: Sequence[Mapping[str, float]], path: Path) -> None:
    """Four small panels over the minutes of the run, after the settling."""
    from lla_fusion_ros.lab.plots import COLOURS, figure  # matplotlib: only for the figure

    samples = _settled(samples)
    minutes = [sample["seconds"] / 60 for sample in samples]
    with figure(path, 1, 4, 12.0, 2.8) as axes:
        memory, handles, latency, frames = axes[0]
        for axis, title, keys in (
            (memory, "resident memory, MB", ("memory_mb", "watch_memory_mb")),
            (handles, "handles and threads", ("handles", "threads", "watch_handles", "watch_threads")),
            (latency, "latency, ms: median and 95%", ("p50_ms", "p95_ms")),
        ):
            for colour, key in zip(COLOURS, (key for key in keys if key in samples[0]), strict=False):
                label = key.removesuffix("_mb").removesuffix("_ms").replace("_", ": ")
                axis.plot(minutes, [sample[key] for sample in samples], color=colour, label=label)
            axis.set_title(title)
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
