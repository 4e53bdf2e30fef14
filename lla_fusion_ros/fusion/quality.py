"""Signs of quality of a view, from the view alone: what `reliability` weighs it by."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lla_fusion_ros.fusion.measure import MeasuredViews, network_mean


def _margin(views: MeasuredViews) -> np.ndarray:
    best_two = np.partition(views.mean_centred, -2, axis=-1)[:, -2:]
    return best_two[:, 1] - best_two[:, 0]


def _of_top(views: MeasuredViews, array: np.ndarray) -> np.ndarray:
    """The entry of the most probable class.  [t, c, m] -> [t, c]"""
    return array[np.arange(len(array)), :, views.top]


def _log_variance(views: MeasuredViews, prior: float | None = None) -> np.ndarray:
    return network_mean(np.log(np.maximum(views.top_variance(prior), 1e-12)))


# Name -> value per view [t]. All are free of the gauge; none looks at another view.
QUALITY: dict[str, Callable[[MeasuredViews], np.ndarray]] = {
    "entropy": lambda v: v.entropy,
    "energy": lambda v: v.energy,
    "log_norm": lambda v: v.feature_norm,
    "log_variance": _log_variance,
    "margin": _margin,
    "top_logit": lambda v: network_mean(_of_top(v, v.centred)),
    "top_spread": lambda v: _of_top(v, v.centred).std(axis=1),
    "logit_spread": lambda v: v.mean_centred.std(axis=-1),
    "log_top": lambda v: np.log(np.maximum(np.maximum.reduce(v.mean_pmf, axis=-1), 1e-12)),
    "network_entropy": lambda v: network_mean(v.network_entropy),
    "disagreement": lambda v: v.disagreement,
    "agreement": lambda v: (v.pmf.argmax(axis=-1) == v.top[:, None]).mean(axis=1),
}


def quality(
    views: MeasuredViews, names: tuple[str, ...] = tuple(QUALITY), prior: float | None = None
) -> np.ndarray:
    """The named signs of each view.  [t, signs]

    `prior` is the prior precision of the Laplace variance among them, None that of the posterior. A large one
    makes the variance a mere norm of the features; under a small one it tells how unlike the training views
    of the predicted class a view is.
    """
    columns = [QUALITY[name](views) for name in names if prior is None or name != "log_variance"]
    if prior is not None and "log_variance" in names:
        columns.insert(names.index("log_variance"), _log_variance(views, prior))
    return np.stack(columns, axis=-1)
