"""`ema`: an exponential filter over the views' pmfs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.fusion.base import Fuser, Scalar
from lla_fusion_ros.types.views import Views


@dataclass(frozen=True, slots=True)
class EmaState:
    """The filtered pmf and whether it has seen anything.

    Attributes:
        pmf: [tracks, classes]
        started: [tracks] bool
    """

    pmf: np.ndarray
    started: np.ndarray


class Ema(Fuser):
    """pmf <- (1 - beta) pmf + beta p_t, starting at the first view's pmf.

    Cost O(CM) per view, state O(M). The newest views count most, so the order matters. Forgets: quick after
    an identity switch, and never surer than a few views allow.
    """

    name = "ema"
    scalars = {"beta": Scalar(0.3, 0.01, 1.0)}

    def initial(self, tracks: int) -> EmaState:
        classes = self.posterior.classes
        return EmaState(np.full((tracks, classes), 1.0 / classes), np.zeros(tracks, bool))

    def update(self, state: EmaState, views: Views) -> EmaState:
        newest = self.measured(views, state).mean_pmf
        beta = np.where(state.started, self.value["beta"], 1.0)[:, None]
        return EmaState(state.pmf + beta * (newest - state.pmf), np.ones(len(newest), bool))

    def predict(self, state: EmaState) -> np.ndarray:
        return state.pmf
