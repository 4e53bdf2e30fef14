"""The paper's five methods and their relatives: fitted on validation images, then asked for a pmf.

All of them answer for single images (L = 1). The networks count as independent, as in the paper, except in
`fusion_cross`, where the covariance between networks (which the paper calls unclear) is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from lla_fusion_ros.fusion import make_fuser
from lla_fusion_ros.fusion.ella import Ella
from lla_fusion_ros.lab.paper.network_outputs import Outputs, Recorded
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.posterior.tune import tune
from lla_fusion_ros.types.pmf import monte_carlo, softmax
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.types.views import Views

SAMPLES = 64  # Sobol points of eq. 12; as good as several hundred random ones
_CHUNK = 500  # images at a time: bounds the memory of the clouds
_TUNING_IMAGES = 2000  # enough for one scalar

Predict = Callable[
    [Outputs], np.ndarray
]  # -> [runs, images, classes]; a single network has one run per member


@dataclass(frozen=True, slots=True)
class Method:
    """A fitted method.

    Attributes:
        title: as in the paper's tables where it is there.
        printed: key of the paper's row in `paper_values`, or None where the paper has none.
        chosen: the scalars found on validation images.
    """

    title: str
    printed: str | None
    predict: Predict
    chosen: dict[str, Any]


def fit_methods(recorded: Recorded) -> dict[str, Method]:
    """Every method on one ensemble; the order is that of the tables."""
    validation = recorded.validation
    posterior, tuning = tune(recorded.posterior, validation.logits, validation.features, validation.labels)
    joint = recorded.joint.with_prior(posterior.prior_precision)
    temperatures = _temperatures(validation)
    of_mean = _best_scale(lambda t: _nll(_tempered_mean(validation, t), validation.labels))
    laplace = {"prior_precision": tuning.prior_precision, "T_theta": tuning.temperature}
    methods = {
        "temperature_scaling": Method(
            "Temperature scaling",
            "temperature_scaling",
            lambda o: softmax(o.logits.astype(np.float64) / temperatures[:, None]).swapaxes(0, 1),
            {"T": temperatures.tolist()},
        ),
        "deep_ensemble": Method(
            "Deep ensemble",
            "deep_ensemble",
            lambda o: softmax(o.logits.astype(np.float64)).mean(axis=1)[None],
            {},
        ),
        "deep_ensemble_scaled": Method(
            "Deep ensemble, temperature-scaled",
            None,
            lambda o: _tempered_mean(o, of_mean)[None],
            {"T": of_mean},
        ),
        "lla": Method("LLA", "lla", lambda o: _single_lla(posterior, o), laplace),
    }
    for key, title, printed, name, values, base in (
        ("fusion", "Fusion of LLAs (eq. 25)", "fusion", "wls", {}, posterior),
        ("fusion_cross", "Fusion of LLAs, cross-network R", None, "wls", {}, joint),
        ("ella", "ELLA, equal weights (eq. 28)", "ella", "ella", {}, posterior),
        ("ella_learned", "ELLA, learned weights", None, "ella", _learned(posterior, validation), posterior),
        ("ella_mixture", "ELLA as a true mixture", None, "ella_mixture", {}, posterior),
    ):
        methods[key] = _fused(title, printed, name, values, base, validation)
    methods["fusion_scaled"] = _scaled("Fusion of LLAs, temperature-scaled", methods["fusion"], validation)
    return methods


def _scaled(title: str, method: Method, validation: Outputs) -> Method:
    """The method with one temperature on its log pmf, as temperature scaling gives one network."""
    few = _first(validation, _TUNING_IMAGES)
    plain = _log(method.predict(few)[0])
    temperature = _best_scale(lambda t: _nll(softmax(plain / t), few.labels))
    return Method(
        title,
        None,
        lambda o: softmax(_log(method.predict(o)) / temperature),
        {**method.chosen, "T": temperature},
    )


def _fused(
    title: str,
    printed: str | None,
    name: str,
    values: dict[str, Any],
    posterior: EnsemblePosterior,
    validation: Outputs,
) -> Method:
    """A fuser of the package on one view per network, with T_theta chosen for it."""
    few = _first(validation, _TUNING_IMAGES)

    def loss(temperature: float) -> float:
        fused = _fuse(name, values, posterior.with_temperature(temperature), few, samples=64)
        return _nll(fused, few.labels)

    temperature = _best_scale(loss, -7.0, 7.0)
    if loss(0.0) <= loss(temperature):
        temperature = 0.0
    chosen = posterior.with_temperature(temperature)
    return Method(
        title, printed, lambda o: _fuse(name, values, chosen, o)[None], {"T_theta": temperature, **values}
    )


def _fuse(
    name: str,
    values: dict[str, Any],
    posterior: EnsemblePosterior,
    outputs: Outputs,
    samples: int = SAMPLES,
) -> np.ndarray:
    fuser = make_fuser(name, posterior, {**values, "samples": samples}, window=1)
    parts = []
    for start in range(0, len(outputs.labels), _CHUNK):
        rows = slice(start, start + _CHUNK)
        views = Views(outputs.logits[rows], outputs.features[rows])
        parts.append(fuser.predict(fuser.update(fuser.initial(len(views)), views)))
    return np.concatenate(parts)


def _single_lla(posterior: EnsemblePosterior, outputs: Outputs) -> np.ndarray:
    """Each member alone: eq. 18, then eq. 12.   [members, images, classes]"""
    parts = []
    for start in range(0, len(outputs.labels), _CHUNK):
        rows = slice(start, start + _CHUNK)
        variance = posterior.variance(outputs.features[rows])
        parts.append(monte_carlo(outputs.logits[rows], variance, SAMPLES).pmf)
    return np.concatenate(parts).swapaxes(0, 1)


def _learned(posterior: EnsemblePosterior, validation: Outputs) -> dict[str, Any]:
    steps = np.ones(len(validation.labels), int)
    tracks = TrackViews.of_one_camera(
        validation.logits[:, None], validation.features[:, None], steps, validation.labels
    )
    return dict(Ella.fit(posterior, tracks))


def _temperatures(validation: Outputs) -> np.ndarray:
    """T of every member (eq. 36).   [members]"""
    logits = validation.logits.astype(np.float64)
    return np.array(
        [
            _best_scale(lambda t, own=own: _nll(softmax(own / t), validation.labels))  # type: ignore[misc]
            for own in logits.swapaxes(0, 1)
        ]
    )


def _tempered_mean(outputs: Outputs, temperature: float) -> np.ndarray:
    mean = softmax(outputs.logits.astype(np.float64)).mean(axis=1)
    return softmax(_log(mean) / temperature)


def _first(outputs: Outputs, count: int) -> Outputs:
    return Outputs(outputs.logits[:count], outputs.features[:count], outputs.labels[:count])


def _log(pmf: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(pmf, 1e-300))


def _best_scale(loss: Callable[[float], float], low: float = -3.0, high: float = 3.0) -> float:
    """The positive number of least loss, searched on a logarithmic scale."""
    found = minimize_scalar(
        lambda log: loss(float(np.exp(log))), bounds=(low, high), method="bounded", options={"xatol": 0.02}
    )
    return float(np.exp(found.x))


def _nll(pmf: np.ndarray, labels: np.ndarray) -> float:
    return float(-np.log(np.maximum(pmf[np.arange(len(labels)), labels], 1e-300)).mean())
