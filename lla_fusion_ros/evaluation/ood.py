"""How well each score tells tracks of unknown things from tracks of known classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from lla_fusion_ros.calibration import TrackViews
from lla_fusion_ros.evaluation.fused import CHUNK
from lla_fusion_ros.fusion.along import flat_views
from lla_fusion_ros.metrics import aupr, auroc, fpr95
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.warnings.model import SCORES, WarningModel
from lla_fusion_ros.warnings.scores import score_table, weak_posterior
from lla_fusion_ros.warnings.state import Sums

COMBINED = "combined"  # the logistic combination that raises the warning


def track_scores_after(
    model: WarningModel, posterior: EnsemblePosterior, tracks: TrackViews, lengths: Sequence[int]
) -> dict[int, dict[str, np.ndarray]]:
    """Every out-of-distribution score after L views, larger is stranger.   L -> score -> [tracks]"""
    parts = [_scores_after(model, posterior, chunk, lengths) for chunk in tracks.chunks(CHUNK)]
    return {
        length: {name: np.concatenate([part[length][name] for part in parts]) for name in parts[0][length]}
        for length in lengths
    }


def _scores_after(
    model: WarningModel, posterior: EnsemblePosterior, tracks: TrackViews, lengths: Sequence[int]
) -> dict[int, dict[str, np.ndarray]]:
    steps = tracks.logits.shape[1]
    weak = weak_posterior(posterior)
    each = Sums.of(flat_views(posterior, tracks.logits, tracks.features))
    result = {}
    for length in lengths:
        used = np.arange(steps) < np.minimum(length, tracks.steps)[:, None]  # [tracks, steps]
        sums = Sums(**{f.name: _sum_used(getattr(each, f.name), used) for f in fields(Sums)})
        columns, _ = score_table(model.space, weak, sums.means())
        result[length] = {name: columns[:, i] for i, name in enumerate(SCORES) if name != "length"}
        result[length][COMBINED] = model.ood_score(columns)
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
