"""`product`: Bayes' rule for independent views and networks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.fusion.base import SumFuser
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.types.pmf import softmax


@dataclass(frozen=True, slots=True)
class LogProduct:
    """Summed log-probabilities.  [tracks, classes]"""

    total: np.ndarray


class Product(SumFuser):
    """pmf ~ prod_lc p_lc, the rule of section "Fusion using non-parametric models".

    Cost O(CM) per view, state O(M). Right for independent views; wildly overconfident on the frames of
    one drive, which are not.
    """

    name = "product"

    def initial(self, tracks: int) -> LogProduct:
        return LogProduct(np.zeros((tracks, self.posterior.classes)))

    def contribution(self, views: MeasuredViews) -> LogProduct:
        return LogProduct(views.log_pmf.sum(axis=1))

    def predict(self, state: LogProduct) -> np.ndarray:
        return softmax(state.total)
