"""What is remembered of tracks: sums and last views."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.fusion.measure import measured
from lla_fusion_ros.types.views import add
from lla_fusion_ros.warnings.state import WINDOW, RecentViews, Sums
from support.tiny_posterior import make_posterior, make_views


def test_the_means_are_those_of_all_views() -> None:
    posterior = make_posterior()
    views = [measured(make_views(posterior, 2, seed), posterior) for seed in range(5)]
    sums = Sums.zeros(2, posterior.networks, posterior.classes, posterior.features)
    np.testing.assert_array_equal(sums.means().pmf, 0.0)  # of no view
    for view in views:
        sums = add(sums, Sums.of(view))
    means = sums.means()
    assert means.count.tolist() == [5, 5]
    np.testing.assert_allclose(means.pmf, np.mean([view.mean_pmf for view in views], axis=0))
    np.testing.assert_allclose(means.features, np.mean([view.features for view in views], axis=0))
    np.testing.assert_allclose(means.energy, np.mean([view.energy for view in views], axis=0))


def test_the_window_keeps_the_newest_views_last() -> None:
    recent = RecentViews.zeros(2, 3, 1)
    for step in range(WINDOW + 3):
        recent = recent.pushed(np.full((2, 3), step), np.full((2, 1), step), step % 2, step)
    assert recent.stamp[0].tolist() == list(range(3, WINDOW + 3))
    assert recent.evidence[1, :, 0].tolist() == list(range(3, WINDOW + 3))
    assert recent.present.all()
