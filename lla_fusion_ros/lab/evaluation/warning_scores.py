"""How well warnings find unknown things, and ids that jump to another object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.fusion.along import views_of
from lla_fusion_ros.fusion.base import SumFuser
from lla_fusion_ros.lab.calibration.changes import shown
from lla_fusion_ros.lab.evaluation.fused import CHUNK
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.metrics import aupr, auroc, fpr95
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.warnings.model import SCORES, WarningModel
from lla_fusion_ros.warnings.scores import score_table, weak_posterior
from lla_fusion_ros.warnings.state import Sums

COMBINED = "combined"  # the logistic combination that raises the warning

SWITCH_AT = 15  # frames of the first object
FALSE_ALARM = 0.01  # per track of 30 frames


def track_scores_after(
    model: WarningModel, posterior: EnsemblePosterior, tracks: TrackViews, lengths: Sequence[int]
) -> dict[int, dict[str, np.ndarray]]:
    """Every out-of-distribution score after L views, larger is stranger.   L -> score -> [tracks]"""
    weak = weak_posterior(posterior)
    parts = []
    for chunk in tracks.chunks(CHUNK):
        each = Sums.of(views_of(posterior, chunk))
        parts.append(_scores_after(model, weak, each, chunk, lengths))
    return {
        length: {name: np.concatenate([part[length][name] for part in parts]) for name in parts[0][length]}
        for length in lengths
    }


def _scores_after(
    model: WarningModel, weak: EnsemblePosterior, each: Sums, tracks: TrackViews, lengths: Sequence[int]
) -> dict[int, dict[str, np.ndarray]]:
    steps = tracks.longest
    result = {}
    for length in lengths:
        used = np.arange(steps) < np.minimum(length, tracks.steps)[:, None]  # [tracks, steps]
        sums = Sums(**{f.name: _sum_used(getattr(each, f.name), used) for f in fields(Sums)})
        columns, _ = score_table(model.space, weak, sums.means())
        result[length] = {name: columns[:, i] for i, name in enumerate(SCORES) if name != "length"}
        result[length][COMBINED] = model.unknown(columns)
    return result


def _sum_used(flat: np.ndarray, used: np.ndarray) -> np.ndarray:
    """[tracks * steps, ...] -> [tracks, ...]"""
    by_step = flat.reshape(*used.shape, -1)
    return np.einsum("tsk,ts->tk", by_step, used.astype(flat.dtype)).reshape(len(used), *flat.shape[1:])


def ood_record(inside: np.ndarray, outside: np.ndarray) -> dict[str, Any]:
    """AUROC, AUPR (outsiders are the positives) and false alarms at 95% detection."""
    score = np.concatenate([inside, outside])
    strange = np.r_[np.zeros(len(inside), bool), np.ones(len(outside), bool)]
    return {"auroc": auroc(score, strange), "aupr": aupr(score, strange), "fpr95": fpr95(score, strange)}


def switch_record(bundle: Bundle, tracks: TrackViews, seed: int = 0) -> dict[str, Any] | None:
    """Detection within 5 and 15 frames after the jump; None where tracks are too short or of one class.

    An alarm before the jump, or in a track without one, is false. `delay` is the median of those found. The
    bundle's threshold states FALSE_ALARM over all regimes of its validation tracks; `at_stated` is what a
    threshold would find that holds that rate on the tracks at hand, as a point of their ROC curve.
    """
    long = np.flatnonzero(tracks.steps >= SWITCH_AT + 5)
    partner = _partners(tracks.label[long], tracks.source[long], seed)
    first, second = long[partner >= 0], long[partner[partner >= 0]]
    if len(first) < 10:
        return None
    plain = np.concatenate([_p_one_object(bundle, tracks.take(rows)) for rows in _chunks(long)])
    jumped = np.concatenate(
        [
            _p_one_object(bundle, _jumped(tracks.take(before), tracks.take(after)))
            for before, after in zip(_chunks(first), _chunks(second), strict=True)
        ]
    )
    lowest = plain.min(axis=1)
    return {
        **_detected(jumped, FALSE_ALARM),
        "false_alarm": float((lowest <= FALSE_ALARM).mean()),
        "stated_false_alarm": FALSE_ALARM,
        "at_stated": _detected(jumped, _threshold(lowest)),
        "tracks": len(first),
    }


def _chunks(rows: np.ndarray) -> list[np.ndarray]:
    """So many tracks at a time that their copies stay small."""
    return [rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK)]


def _threshold(lowest: np.ndarray) -> float:
    """The largest threshold that no more than a share FALSE_ALARM of these tracks ever falls to."""
    allowed = int(FALSE_ALARM * len(lowest))
    return float(np.nextafter(np.sort(lowest)[allowed], -1.0))


def _detected(jumped: np.ndarray, threshold: float) -> dict[str, Any]:
    alarms = jumped <= threshold
    after = alarms[:, SWITCH_AT:]
    first = np.where(after.any(axis=1), after.argmax(axis=1) + 1, np.inf)
    first[alarms[:, :SWITCH_AT].any(axis=1)] = np.inf
    found = first[np.isfinite(first)]
    return {
        "detection_5": float((first <= 5).mean()),
        "detection_15": float((first <= 15).mean()),
        "delay": float(np.median(found)) if len(found) else None,
    }


def _partners(label: np.ndarray, source: np.ndarray, seed: int) -> np.ndarray:
    """For each track another object of another class, -1 where there is none."""
    rng = np.random.default_rng(seed)
    partner = np.full(len(label), -1)
    for track in range(len(label)):
        others = np.flatnonzero((label != label[track]) & (source != source[track]))
        if len(others):
            partner[track] = rng.choice(others)
    return partner


def _jumped(first: TrackViews, second: TrackViews) -> TrackViews:
    """The first frames of one object, then the frames of another from the same place in its track on.

    Both are then equally far away, so that the jump does not show in size or sharpness.
    """
    joined = {
        name: np.concatenate(
            [getattr(first, name)[:, :SWITCH_AT], getattr(second, name)[:, SWITCH_AT:]], axis=1
        )
        for name in ("logits", "features", "camera")
    }
    return replace(first, **joined, steps=second.steps)


def _p_one_object(bundle: Bundle, tracks: TrackViews) -> np.ndarray:
    """The p-value of a track showing one object, after each frame; 1 after a track has ended.

    [tracks, steps]
    """
    fuser = bundle.fuser()
    pooled = fuser if isinstance(fuser, SumFuser) else bundle.fuser("pool")
    p_values = bundle.change_alarm().p_value(shown(pooled, tracks, bundle.change_rates()).odds)
    return np.where(tracks.real, p_values, 1.0)
