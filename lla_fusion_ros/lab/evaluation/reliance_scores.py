"""Do sets and bounds hold on other tracks, and how tight are they?"""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
from scipy.stats import betabinom

from lla_fusion_ros.lab.evaluation.wrapper import Branch, Leaf, bounds_of, wrapped
from lla_fusion_ros.reliance.statements import COVERAGES, GROUPS, Reliance, groups_of
from lla_fusion_ros.types.track_views import TrackViews


def coverage_records(reliance: Reliance, pmf: np.ndarray, tracks: TrackViews) -> list[dict[str, Any]]:
    """For each group of views and coverage that is promised: the share of objects whose set held throughout.

    `least` is what so many objects show at least in 97.5 of 100 cases if they are like those of the
    calibration, which are a sample, too: the coverage of a set is Beta distributed, the count Beta-binomial.
    pmf after every view [tracks, steps, classes]
    """
    steps = np.arange(1, tracks.longest + 1)
    records = []
    for group, first in enumerate(GROUPS):
        there = tracks.real & (groups_of(steps) == group)
        reached = there.any(axis=1)
        objects = len(np.unique(tracks.source[reached]))
        if objects == 0:
            continue
        for coverage in (c for c in COVERAGES if c <= reliance.promised(group)):
            views = np.broadcast_to(steps, there.shape)[there]
            inside = reliance.sets(pmf[there], views, coverage)
            missed = np.zeros(there.shape, bool)
            missed[there] = ~inside[np.arange(len(inside)), np.repeat(tracks.label, there.sum(axis=1))]
            held = ~missed[reached].any(axis=1)
            records.append(
                {
                    "views_from": first,
                    "promised": coverage,
                    "objects": objects,
                    "held": float(held.mean()),
                    "least": _least_held(objects, reliance.objects[group], coverage),
                    "mean_size": float(inside.sum(axis=1).mean()),
                }
            )
    return records


def _least_held(objects: int, calibrated: int, coverage: float) -> float:
    rank = ceil((calibrated + 1) * coverage - 1e-9)
    return float(betabinom.ppf(0.025, objects, rank, calibrated + 1 - rank) / objects)


def bound_records(
    reliance: Reliance, pmf: np.ndarray, single: np.ndarray, tracks: TrackViews, tree: Leaf | Branch | None
) -> list[dict[str, Any]]:
    """Error, mean bound and Brier score of "this class is right" for ours and for the uncertainty wrapper.

    pmf fused after every view, single: of every view alone.  2 x [tracks, steps, classes]
    """
    label = np.repeat(tracks.label, tracks.steps)
    ours = reliance.upper_bounds(pmf[tracks.real])
    records = [_record("sets and bounds", pmf[tracks.real].argmax(axis=1) != label, ours)]
    if tree is not None:
        vote, features = wrapped(single)
        found = bounds_of(tree, features[tracks.real])
        records.append(_record("uncertainty wrapper", vote[tracks.real] != label, found))
    return records


def _record(name: str, wrong: np.ndarray, bound: np.ndarray) -> dict[str, Any]:
    groups = [wrong[bound == value].mean() - value for value in np.unique(bound)]
    return {
        "bounds": name,
        "error": float(wrong.mean()),
        "mean_bound": float(bound.mean()),
        "brier": float(((1.0 - bound - ~wrong) ** 2).mean()),
        "worst_excess": float(max(groups)),  # of the error share over its bound; below 0: all hold
    }
