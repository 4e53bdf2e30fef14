"""`mc_product`: parameters sampled, each view's pmf averaged over them, then the product rule."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from lla_fusion_ros.fusion.base import Scalar, SumFuser
from lla_fusion_ros.fusion.measure import LOWEST_LOGIT, MeasuredViews
from lla_fusion_ros.fusion.product import LogProduct
from lla_fusion_ros.pmf import softmax


class McProduct(SumFuser):
    """theta^(k) ~ N(theta, T_theta A^-1), p_lc = mean_k softmax(g(x_l | theta^(k))), pmf ~ prod p_lc.

    Eq. mc_samp_fg_prod, with the same K parameter samples for every view, as printed. Cost O(KCMD) per view,
    state O(M). For comparison: the point estimate of each view is all that reaches the fusion.
    """

    name = "mc_product"
    options = {"samples": Scalar(64, 1, 4096)}

    @cached_property
    def _deviations(self) -> np.ndarray:
        """Samples of theta - mean: sqrt(T_theta) L_m^-T e.  [networks, features, classes * samples]"""
        factors = np.asarray(self.posterior.factors, np.float64)
        shape = (*factors.shape[:3], int(self.value["samples"]))
        normal = np.random.default_rng(0).standard_normal(shape)  # fixed: equal inputs give equal outputs
        samples = np.linalg.solve(factors.swapaxes(-1, -2), normal)  # [networks, classes, features, samples]
        scaled = np.sqrt(self.posterior.temperature) * samples.transpose(0, 2, 1, 3)
        return np.ascontiguousarray(scaled).reshape(shape[0], shape[2], -1)

    def initial(self, tracks: int) -> LogProduct:
        return LogProduct(np.zeros((tracks, self.posterior.classes)))

    def contribution(self, views: MeasuredViews) -> LogProduct:
        shift = np.matmul(views.bounded_features.swapaxes(0, 1), self._deviations)  # [c, t, m * samples]
        shift = shift.reshape(*shift.shape[:2], self.posterior.classes, -1).transpose(1, 0, 3, 2)
        pmf = softmax(views.shifted[:, :, None, :] + shift).mean(axis=2)  # [t, c, m]
        return LogProduct(np.log(np.maximum(pmf, np.exp(LOWEST_LOGIT / 2))).sum(axis=1))

    def predict(self, state: LogProduct) -> np.ndarray:
        return softmax(state.total)
