"""What is remembered of tracks: sums and last views."""

from __future__ import annotations

import numpy as np
from scipy.stats import entropy

from lla_fusion_ros.fusion.measure import measured
from lla_fusion_ros.types.views import add
from lla_fusion_ros.warnings.model import DISTRUST
from lla_fusion_ros.warnings.state import WINDOW, RecentViews, Sums
from support.tiny_posterior import make_posterior, make_views


def test_the_means_weigh_doubtful_views_less() -> None:
    posterior = make_posterior()
    views = [measured(make_views(posterior, 2, seed), posterior) for seed in range(5)]
    sums = Sums.zeros(2, posterior.networks, posterior.classes, posterior.features)
    np.testing.assert_array_equal(sums.means().pmf, 0.0)  # of no view
    for view in views:
        sums = add(sums, Sums.of(view))
    means = sums.means()
    assert means.count.tolist() == [5, 5]
    weight = np.stack([np.exp(-DISTRUST * entropy(view.mean_pmf, axis=1)) for view in views])
    for name, of_views in (
        ("pmf", [view.mean_pmf for view in views]),
        ("features", [view.features for view in views]),
        ("energy", [view.energy for view in views]),
    ):
        expected = [np.average([each[row] for each in of_views], 0, weight[:, row]) for row in (0, 1)]
        np.testing.assert_allclose(getattr(means, name), expected, rtol=1e-6)


def test_the_window_keeps_the_newest_views_last() -> None:
    recent = RecentViews.zeros(2, 3)
    for step in range(WINDOW + 3):
        recent = recent.pushed(np.full((2, 3), step), step % 2, step)
    assert recent.stamp[0].tolist() == list(range(3, WINDOW + 3))
    assert recent.evidence[1, :, 0].tolist() == list(range(3, WINDOW + 3))
    assert recent.present.all()
