"""`mc_product`: parameters sampled, each view's pmf averaged over them, then the product rule."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from lla_fusion_ros.fusion.base import Scalar, SumFuser
from lla_fusion_ros.fusion.measure import LOWEST_LOGIT, MeasuredViews
from lla_fusion_ros.fusion.product import LogProduct
from lla_fusion_ros.posterior.samples import parameter_cloud, parameter_deviations
from lla_fusion_ros.types.pmf import softmax


class McProduct(SumFuser):
    """theta^(k) ~ N(theta, T_theta A^-1), p_lc = mean_k softmax(g(x_l | theta^(k))), pmf ~ prod p_lc.

    Eq. mc_samp_fg_prod, with the same K parameter samples for every view, as printed. Cost O(KCMD) per view,
    state O(M). For comparison: the point estimate of each view is all that reaches the fusion.
    """

    name = "mc_product"
    options = {"samples": Scalar(64, 1, 4096)}

    @cached_property
    def _deviations(self) -> np.ndarray:
        return parameter_deviations(self.posterior, int(self.value["samples"]))

    def initial(self, tracks: int) -> LogProduct:
        return LogProduct(np.zeros((tracks, self.posterior.classes)))

    def contribution(self, views: MeasuredViews) -> LogProduct:
        pmf = parameter_cloud(views.shifted, views.bounded_features, self._deviations).pmf  # [t, c, m]
        return LogProduct(np.log(np.maximum(pmf, np.exp(LOWEST_LOGIT / 2))).sum(axis=1))

    def predict(self, state: LogProduct) -> np.ndarray:
        return softmax(state.total)
