"""The figure of a soak run: memory, handles and threads, latency and frames against time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lla_fusion_ros.lab.plots import COLOURS, figure

Samples = list[dict[str, float]]


def draw_soak(samples: Samples, path: Path) -> None:
    """Four small panels over the minutes of the run."""
    minutes = [sample["seconds"] / 60 for sample in samples]
    with figure(path, 1, 4, 12.0, 2.8) as axes:
        memory, handles, latency, frames = axes[0]
        _lines(memory, minutes, samples, "resident memory, MB", {"memory_mb": "memory"})
        _lines(handles, minutes, samples, "handles and threads", {"handles": "handles", "threads": "threads"})
        _lines(latency, minutes, samples, "latency, ms", {"p50_ms": "median", "p95_ms": "95%"})
        rates = [
            (after["answered"] - before["answered"]) / max(after["seconds"] - before["seconds"], 1e-9)
            for before, after in zip(samples, samples[1:], strict=False)
        ]
        frames.plot(minutes[1:], rates, color=COLOURS[0])
        frames.set_title("frames fused a second")
        for axis in (memory, handles, latency, frames):
            axis.set_xlabel("minutes")
            axis.set_ylim(bottom=0)


def _lines(axis: Any, minutes: list[float], samples: Samples, title: str, keys: dict[str, str]) -> None:
    for colour, (key, label) in zip(COLOURS, keys.items(), strict=False):
        axis.plot(minutes, [sample[key] for sample in samples], color=colour, label=label)
    axis.set_title(title)
    if len(keys) > 1:
        axis.legend()
