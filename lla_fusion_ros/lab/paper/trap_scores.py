"""Scores of camera traps: every fuser on the test tracks of one split, their mean over splits, a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lla_fusion_ros.fusion import make_fuser
from lla_fusion_ros.fusion.along import pmf_along, views_of
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.reliance.statements import calibrate
from lla_fusion_ros.types.metrics import accuracy, auroc, brier, ece, nll
from lla_fusion_ros.types.pmf import entropy, softmax
from lla_fusion_ros.types.track_views import TrackViews

# The last one is ours; `wls` is eq. 25 as printed.
FUSERS = ("last", "mean_pmf", "product", "wls", "ella", "pool", "evidence_pool")
OURS = FUSERS[-1]
LENGTHS = (1, 2, 3)  # and all


@dataclass(frozen=True, slots=True)
class Seen:
    """One way of seeing the tracks of one split; validation by networks that never saw these tracks."""

    posterior: EnsemblePosterior
    validation: TrackViews
    test: TrackViews
    outside: TrackViews


def fitting(seen: Seen) -> tuple[TrackViews, MeasuredViews]:
    """What fusers are fitted on."""
    tracks = seen.validation
    return tracks, views_of(seen.posterior, tracks)


def pmfs(seen: Seen, name: str, values: Any, tracks: TrackViews) -> np.ndarray:
    """After every view; the last one stays.  [tracks, steps, classes]"""
    fuser = make_fuser(name, seen.posterior, values, window=tracks.longest)
    views = views_of(seen.posterior, tracks)
    found = pmf_along(fuser, views, tracks.longest, list(range(1, tracks.longest + 1)))
    last = np.minimum(np.arange(tracks.longest), tracks.steps[:, None] - 1)
    return np.take_along_axis(found, last[..., None], axis=1)


def scores(seen: Seen, values: dict[str, Any]) -> list[dict[str, Any]]:
    """One record for each fuser and length; "all" also against the rare species, and with sets."""
    rows = []
    for name in FUSERS:
        pmf, strange = (pmfs(seen, name, values[name], each) for each in (seen.test, seen.outside))
        for length in (*LENGTHS, 0):
            now = pmf[:, length - 1]
            row: dict[str, Any] = {"fuser": name, "L": length or "all", "tracks": len(now)}
            label = seen.test.label
            row |= {"accuracy": accuracy(now, label), "nll": nll(now, label), "brier": brier(now, label)}
            row["ece"] = ece(now, label)
            if not length:
                row["auroc"] = _detection(entropy(now), entropy(strange[:, -1]))
                row["auroc_near"] = _detection(_far(seen, seen.test), _far(seen, seen.outside))
                row |= _promised(seen, name, values[name], pmf)
            rows.append(row)
    return rows


def _detection(inside: np.ndarray, outside: np.ndarray) -> float:
    strange = np.r_[np.zeros(len(inside), bool), np.ones(len(outside), bool)]
    return auroc(np.r_[inside, outside], strange)


def _far(seen: Seen, tracks: TrackViews) -> np.ndarray:
    """Entropy of the mean pmf, times how unlike the five nearest validation tracks its mean feature is."""
    own, known = _mean_feature(tracks), _mean_feature(seen.validation)
    near = np.sort(own @ known.T, axis=1)[:, -5:].mean(axis=1)
    pmf = softmax(tracks.logits.astype(np.float64)).mean(axis=2)
    mean = (pmf * tracks.real[..., None]).sum(axis=1) / tracks.steps[:, None]
    return entropy(mean) * np.maximum(1 - near, 1e-6)


def _mean_feature(tracks: TrackViews) -> np.ndarray:
    """Of the first network's features, at length one.  [tracks, d]"""
    plain = tracks.features[:, :, 0, :-1] * tracks.real[..., None]
    mean = plain.sum(axis=1)
    return mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)


def _promised(seen: Seen, name: str, values: Any, pmf: np.ndarray) -> dict[str, float]:
    """Sets for 90% of the tracks: how many held the truth in every frame, how large they were at the end; and
    the mean bound of the error at the end."""
    check, test = seen.validation, seen.test
    fused = pmfs(seen, name, values, check)
    reliance = calibrate(fused, check.real, check.label, check.regime, check.source)
    held, size = [], []
    for track in range(len(test)):
        own = pmf[track, : test.steps[track]]
        inside = reliance.sets(own, np.arange(1, len(own) + 1), 0.9)
        held.append(inside[:, test.label[track]].all())
        size.append(inside[-1].sum())
    bound = reliance.upper_bounds(pmf[:, -1]).mean()
    return {"set_held": float(np.mean(held)), "set_size": float(np.mean(size)), "bound": float(bound)}


def summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean and spread over splits of every score."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["way"], row["by"], row["fuser"], row["L"]), []).append(row)
    table = []
    for (way, by, fuser, length), own in groups.items():
        numbers = [key for key, value in own[0].items() if isinstance(value, float)]
        spread = {key: float(np.std([row[key] for row in own], ddof=len(own) > 1)) for key in numbers}
        mean = {key: float(np.mean([row[key] for row in own])) for key in numbers}
        table.append({"way": way, "by": by, "fuser": fuser, "L": length, "mean": mean, "spread": spread})
    return table


def draw_two_sequences(
    names: Sequence[str], frames: Sequence[np.ndarray], seen: Seen, values: dict[str, Any], path: Path
) -> None:
    """A sequence whose last frame is wrong while the fused class is right, and one where fusion fails."""
    from lla_fusion_ros.lab.plots import COLOURS, figure

    test = seen.test
    alone = pmfs(seen, "last", values["last"], test)
    fused = pmfs(seen, OURS, values[OURS], test)
    right = [each[:, -1].argmax(axis=1) == test.label for each in (alone, fused)]
    long = (test.steps >= 3) & (test.steps <= 6)
    chosen = []
    for wanted in (long & ~right[0] & right[1], long & ~right[1]):
        sure = np.where(wanted, fused[:, -1].max(axis=1), -1)
        chosen.append(int(sure.argmax()))
    columns = int(max(test.steps[track] for track in chosen))
    with figure(path, 4, columns, 1.7 * columns, 6.4) as axes:
        for axis in axes.ravel():
            axis.axis("off")
        for line, track in enumerate(chosen):
            for step in range(int(test.steps[track])):
                axes[2 * line, step].imshow(frames[track][step])
                bars = axes[2 * line + 1, step]
                bars.axis("on")
                top = np.argsort(-fused[track, step])[:3]
                bars.barh(range(3), fused[track, step, top], 0.4, color=COLOURS[0], label="fused")
                bars.barh(np.arange(3) + 0.4, alone[track, step, top], 0.4, color=COLOURS[1], label="alone")
                bars.set(xlim=(0, 1), yticks=range(3))
                bars.set_yticklabels([names[each] for each in top], fontsize=5)
                bars.invert_yaxis()
            axes[2 * line, 0].set_title(f"truth: {names[test.label[track]]}", fontsize=7, loc="left")
        axes[1, 0].legend(fontsize=5)
