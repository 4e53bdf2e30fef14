"""Signs of quality of a view, from the view alone: what `reliability` weighs it by."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lla_fusion_ros.fusion.measure import MeasuredViews, network_mean


def _margin(views: MeasuredViews) -> np.ndarray:
    ordered = views.mean_centred.copy()
    ordered.partition(-2, axis=-1)
    return ordered[:, -1] - ordered[:, -2]


def _logit_spread(views: MeasuredViews) -> np.ndarray:
    logits = views.mean_centred  # of mean 0
    return np.sqrt(np.einsum("tm,tm->t", logits, logits) * (1.0 / logits.shape[1]))


def _log_variance(views: MeasuredViews, prior: float | None = None) -> np.ndarray:
    return network_mean(np.log(np.maximum(views.top_variance(prior), 1e-12)))


# Name -> value per view [t]. All are free of the gauge; none looks at another view.
QUALITY: dict[str, Callable[[MeasuredViews], np.ndarray]] = {
    "entropy": lambda v: v.entropy,
    "energy": lambda v: v.energy,
    "log_norm": lambda v: v.feature_norm,
    "log_variance": _log_variance,
    "margin": _margin,
    "top_logit": lambda v: v.top_logit,
    "top_spread": lambda v: v.top_spread,
    "logit_spread": _logit_spread,
    "log_top": lambda v: np.log(np.maximum(np.maximum.reduce(v.mean_pmf, axis=-1), 1e-12)),
    "network_entropy": lambda v: v.mean_network_entropy,
    "disagreement": lambda v: v.disagreement,
    "agreement": lambda v: network_mean(v.shifted.argmax(axis=-1) == v.top[:, None]),
}


def quality(
    views: MeasuredViews, names: tuple[str, ...] = tuple(QUALITY), prior: float | None = None
) -> np.ndarray:
    """The named signs of each view.  [t, signs]

    `prior` is the prior precision of the Laplace variance among them, None that of the posterior. A large one
    makes the variance a mere norm of the features; under a small one it tells how unlike the training views
    of the predicted class a view is.
    """
    signs = np.empty((len(views), len(names)))
    for column, name in enumerate(names):
        signs[:, column] = _log_variance(views, prior) if name == "log_variance" else QUALITY[name](views)
    return signs
