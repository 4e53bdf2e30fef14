"""Figures of docs/results.md: cost against the length of a track, tracks per frame and cameras."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lla_fusion_ros.plots.style import COLOURS, figure

Records = list[dict[str, Any]]


def draw_performance(document: dict[str, Any], folder: Path) -> list[Path]:
    """Write the figures for which the document has records; their paths."""
    written = []
    fusion, live = document.get("fusion", []), document.get("live", [])
    if fusion:
        written += [folder / "performance-length.png", folder / "performance-tracks.png"]
        _cost_by_length(fusion, written[-2])
        _cost_by_tracks(fusion, written[-1])
    if live:
        written.append(folder / "performance-cameras.png")
        _cost_by_cameras(live, written[-1])
    return written


def _cost_by_length(records: Records, path: Path) -> None:
    with figure(path, 1, 2, 9.0, 3.4, sharex=True) as axes:
        left, right = axes[0]
        for colour, tracks in zip(COLOURS, _values(records, "tracks"), strict=False):
            rows = _rows(records, "L", default=True, tracks=tracks)
            left.plot(*_xy(rows, "L"), "o-", color=colour, label=f"{tracks} tracks a frame")
        left.set_title(f"default fuser ({_default(records)}) with tracks and warnings")
        left.set_ylabel("µs of CPU per view")
        slow = sorted(
            {r["fuser"] for r in records},
            key=lambda name: -max(r["us_per_view"] for r in records if r["fuser"] == name),
        )
        for number, name in enumerate(slow):
            rows = _rows(records, "L", with_warnings=False, fuser=name, tracks=10)
            if rows:
                style = "o-" if number < len(COLOURS) else "s--"
                right.plot(*_xy(rows, "L"), style, color=COLOURS[number % len(COLOURS)], label=name, ms=3)
        right.set_title("every fuser alone, 10 tracks a frame")
        right.legend(fontsize=6.5, ncols=2, loc="center left", bbox_to_anchor=(1.0, 0.5))
        left.legend()
        for axis in (left, right):
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_xlabel("L, views of the track so far")


def _cost_by_tracks(records: Records, path: Path) -> None:
    with figure(path, 1, 1, 5.0, 3.4) as axes:
        axis = axes[0][0]
        rows = _rows(records, "tracks", default=True, L=1000)
        for colour, field, name in (
            (COLOURS[7], "forward_us_per_view", "float32"),
            (COLOURS[1], "forward_int8_us_per_view", "int8"),
        ):
            axis.plot(*_xy(rows, "tracks", field), "s-", color=colour, label=f"networks alone, {name}")
        axis.plot(*_xy(rows, "tracks"), "o-", color=COLOURS[0], label="default fuser and warnings")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("tracks a frame")
        axis.set_ylabel("µs of CPU per view")
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24))


def _cost_by_cameras(records: Records, path: Path) -> None:
    rows = sorted(
        (r for r in records if r["rate"] == 1.0 and r["precision"] == "auto"), key=lambda r: r["cameras"]
    )
    with figure(path, 1, 2, 8.0, 3.2) as axes:
        left, right = axes[0]
        left.plot(*_xy(rows, "cameras", "cpu_cores"), "o-", color=COLOURS[0])
        left.set_ylabel("CPU cores used by the node")
        for colour, name in zip(COLOURS, ("p50_ms", "p95_ms"), strict=False):
            right.plot(*_xy(rows, "cameras", name), "o-", color=colour, label=name.removesuffix("_ms"))
        right.set_ylabel("ms from image stamp to /fused_classes")
        right.legend()
        for axis in (left, right):
            axis.set_xlabel("cameras (10 Hz, 20 objects a frame)")
            axis.set_ylim(bottom=0)


def _values(records: Records, key: str) -> list[Any]:
    return sorted({record[key] for record in records})


def _default(records: Records) -> str:
    return next((r["fuser"] for r in records if r["default"]), "")


def _rows(records: Records, order: str, **wanted: Any) -> Records:
    found = [r for r in records if all(r[key] == value for key, value in wanted.items())]
    return sorted(found, key=lambda record: record[order])


def _xy(rows: Records, x: str, y: str = "us_per_view") -> tuple[list[float], list[float]]:
    return [row[x] for row in rows], [row[y] for row in rows]
