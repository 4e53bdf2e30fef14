"""The coefficients of `committee`: both pools fitted by gradient on validation tracks, each by itself."""

from __future__ import annotations

from lla_fusion_ros.fusion.base import FitTracks, Value
from lla_fusion_ros.fusion.committee import SIGNS
from lla_fusion_ros.fusion.fitting.reliability import fit_reliability
from lla_fusion_ros.fusion.fitting.reliable_pool import SIGN_PRIOR, fit_reliable_pool
from lla_fusion_ros.fusion.quality import QUALITY
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior


def fit_committee(posterior: EnsemblePosterior, tracks: FitTracks) -> dict[str, Value]:
    """Least NLL of the linear and of the log-linear pool (see `Committee`).

    A few hundred validation tracks hold a few dozen errors: fewer signs, and two pools that do not
    know of each other, are the guard against learning those by heart (docs/evidence.md).
    """
    linear = fit_reliable_pool(posterior, tracks, signs=SIGNS)
    log = fit_reliability(posterior, tracks, signs=SIGNS, prior=SIGN_PRIOR)
    return {
        "linear_theta": _chosen(linear["theta"]),
        "log_theta": _chosen(log["theta"]),
        "center": _chosen(linear["center"]),
        "scale": _chosen(linear["scale"]),
        "prior": SIGN_PRIOR,
        **{key: linear[key] for key in ("alpha", "temperature", "view_temperature")},
        **{key: log[key] for key in ("a", "b")},
    }


def _chosen(vector: Value) -> list[float]:
    assert isinstance(vector, list)
    return [vector[list(QUALITY).index(name)] for name in SIGNS]
