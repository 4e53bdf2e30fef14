"""Signs of quality of a view, from the view alone: what the learned fusers weigh it by."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.products import last_axis_mean


def _log_variance(views: MeasuredViews, prior: float | None = None) -> np.ndarray:
    return last_axis_mean(np.log(np.maximum(views.top_variance(prior), 1e-12)))


# All are free of the gauge; none looks at another view. More of them (margin, spreads over classes and
# networks, agreement) were tried and taught nothing further (docs/evidence.md).
QUALITY = ("entropy", "energy", "log_norm", "log_variance", "disagreement")
_COLUMN = {"entropy": 0, "energy": 1, "log_norm": 2, "disagreement": 3}  # of `MeasuredViews.signs`


def quality(views: MeasuredViews, names: tuple[str, ...] = QUALITY, prior: float | None = None) -> np.ndarray:
    """The named signs of each view.  [t, signs]

    `prior` is the prior precision of the Laplace variance among them, None that of the posterior. A large one
    makes the variance a mere norm of the features; under a small one it tells how unlike the training views
    of the predicted class a view is.
    """
    signs = views.signs
    table = np.empty((len(signs), len(names)))
    for place, name in enumerate(names):
        table[:, place] = _log_variance(views, prior) if name == "log_variance" else signs[:, _COLUMN[name]]
    return table
