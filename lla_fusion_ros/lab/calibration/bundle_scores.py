"""The scores a bundle carries: its default fuser against a single frame, by regime and length."""

from __future__ import annotations

from typing import Any

import numpy as np

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.fusion.along import flat_views
from lla_fusion_ros.lab.calibration.fusers import fused_after
from lla_fusion_ros.types.metrics import accuracy, bootstrap_interval, ece, nll
from lla_fusion_ros.types.track_views import TrackViews


def score_tracks(bundle: Bundle, tracks: TrackViews, seed: int = 0) -> dict[str, Any]:
    """{"tracks": n, "single_frame": {regime: accuracy}, "fused": [records by regime and L]}.

    `single_frame` is the deep ensemble on every frame alone; intervals are 95%, by bootstrap over tracks.
    """
    posterior = bundle.posterior()
    records, single = [], {}
    for regime in dict.fromkeys(tracks.regime.tolist()):
        part = tracks.take(tracks.regime == regime)
        views = flat_views(posterior, part.logits, part.features)
        right = right_frames(views.mean_pmf, part)
        single[regime] = float(right.sum() / part.steps.sum())
        for length, pmf in fused_after(bundle.fuser(), part, views).items():
            long = part.reaching(length)
            label, source = long.label, long.source
            hits = (pmf.argmax(axis=1) == label).astype(float)
            records.append(
                {
                    "regime": regime,
                    "L": length,
                    "tracks": len(label),
                    "accuracy": accuracy(pmf, label),
                    "accuracy_interval": list(bootstrap_interval(hits, track=source, seed=seed)),
                    "nll": nll(pmf, label),
                    "ece": ece(pmf, label),
                }
            )
    return {"tracks": len(np.unique(tracks.source)), "single_frame": single, "fused": records}


def right_frames(mean_pmf: np.ndarray, tracks: TrackViews) -> np.ndarray:
    """In how many of its frames each track is right, every frame alone.  [tracks * steps, m] -> [tracks]"""
    right = mean_pmf.argmax(axis=1).reshape(-1, tracks.longest) == tracks.label[:, None]
    return (right & tracks.real).sum(axis=1)
