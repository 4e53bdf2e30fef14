"""Signs of quality of a view, from the view alone: what the learned fusers weigh it by."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.products import last_axis_mean


def _log_variance(views: MeasuredViews, prior: float | None = None) -> np.ndarray:
    return last_axis_mean(np.log(np.maximum(views.top_variance(prior), 1e-12)))


# Name -> value per view [t]. All are free of the gauge; none looks at another view. More of them (margin,
# spreads over classes and networks, agreement) were tried and taught nothing further (docs/evidence.md).
QUALITY: dict[str, Callable[[MeasuredViews], np.ndarray]] = {
    "entropy": lambda v: v.entropy,
    "energy": lambda v: v.energy,
    "log_norm": lambda v: v.feature_norm,
    "log_variance": _log_variance,
    "disagreement": lambda v: v.disagreement,
}


def quality(
    views: MeasuredViews, names: tuple[str, ...] = tuple(QUALITY), prior: float | None = None
) -> np.ndarray:
    """The named signs of each view.  [t, signs]

    `prior` is the prior precision of the Laplace variance among them, None that of the posterior. A large one
    makes the variance a mere norm of the features; under a small one it tells how unlike the training views
    of the predicted class a view is.
    """
    rows = np.empty((len(names), len(views)))
    for row, name in enumerate(names):
        rows[row] = _log_variance(views, prior) if name == "log_variance" else QUALITY[name](views)
    return rows.T
