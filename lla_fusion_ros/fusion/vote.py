"""`vote`: the majority of the views' most probable classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.fusion.base import Scalar, SumFuser
from lla_fusion_ros.fusion.measure import MeasuredViews


@dataclass(frozen=True, slots=True)
class Votes:
    """How often each class came first.  [tracks, classes]"""

    votes: np.ndarray


class Vote(SumFuser):
    """pmf_m = (n_m + e) / (L + M e), n_m the views whose most probable class is m, e a pseudo-count.

    Cost O(CM) per view, state O(M). What many pipelines do; it forgets how sure each view was.
    """

    name = "vote"
    scalars = {"pseudo_count": Scalar(0.1, 1e-4, 10.0, log=True)}

    def initial(self, tracks: int) -> Votes:
        return Votes(np.zeros((tracks, self.posterior.classes)))

    def contribution(self, views: MeasuredViews) -> Votes:
        votes = np.zeros((len(views), self.posterior.classes))
        votes[np.arange(len(views)), views.top] = 1.0
        return Votes(votes)

    def predict(self, state: Votes) -> np.ndarray:
        smoothed = state.votes + self.value["pseudo_count"]
        return smoothed / smoothed.sum(axis=-1, keepdims=True)
