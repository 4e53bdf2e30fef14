"""`wls`: weighted least squares over all views of a window, eq. 25 exactly as printed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lla_fusion_ros.fusion.base import Fuser, Scalar, Values
from lla_fusion_ros.fusion.cholesky import append_row, drop_first, forward_solve
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.pmf import monte_carlo, probit
from lla_fusion_ros.types.views import Views, put_rows, take_rows

NOTE = (
    "fuser 'wls' is eq. 25 as printed: over time its weights take both signs and accuracy falls with "
    "every view (docs/method.md); use 'wls_robust', or 'wls' for several networks on one view"
)
SINGULAR = 1e-10  # of a row's own variance: what is left below that is rounding


@dataclass(frozen=True, slots=True)
class WlsState:
    """The views in the window and the Cholesky factor of their covariance, class by class.

    Rows n: networks that count as independent have a factor each (groups g = networks, n = window);
    with cross-network covariance there is one group and n = window * networks, a view's networks together.

    Attributes:
        count: views in the window.                                          [tracks] int
        features: of those views.                      [tracks, window, networks, features]
        zeta: their max-shifted logits.                          [tracks, groups, classes, n]
        live: 1 for rows that count, 0 for empty or linearly dependent ones. [tracks, groups, classes, n]
        factor: Cholesky factor of S_m at T_theta = 1.        [tracks, groups, classes, n, n]
        ones, values: b = L^-1 1 and a = L^-1 zeta.              [tracks, groups, classes, n]
    """

    count: np.ndarray
    features: np.ndarray
    zeta: np.ndarray
    live: np.ndarray
    factor: np.ndarray
    ones: np.ndarray
    values: np.ndarray


class Wls(Fuser):
    """P = (H^T R^-1 H)^-1, g = P H^T R^-1 zeta; per class P_m = 1 / sum b^2, g_m = P_m sum ab.

    zeta are the max-shifted logits (eq. 11) of all views and networks, R their covariance (eq. 22), with
    cross-network blocks where the posterior has them. A view is a new row of the Cholesky factor,
    O(M(D^2 + LD + L^2)); a full window drops its oldest view. The residual
    chi^2 = sum a^2 - (sum ab)^2 / sum b^2 comes with it. Use it for several networks on one view (L = 1).
    """

    name = "wls"
    notes = (NOTE,)
    options = {
        "samples": Scalar(64, 0, 4096),  # Monte Carlo points of the pmf (eq. 12); 0: closed form
        "strict": Scalar(0, 0, 1),  # 1: refuse a view that makes R singular; 0: it changes nothing
    }

    def __init__(self, posterior: EnsemblePosterior, values: Values | None = None, window: int = 30) -> None:
        super().__init__(posterior, values, window)
        self.groups = posterior.networks if posterior.cross is None else 1
        self.rows_per_view = posterior.networks // self.groups

    @cached_property
    def _inverse(self) -> np.ndarray:
        """A_cm^-1.  [networks, classes, features, features]"""
        root = np.linalg.inv(np.asarray(self.posterior.factors, np.float64))
        return root.swapaxes(-1, -2) @ root

    def initial(self, tracks: int) -> WlsState:
        p = self.posterior
        rows = (tracks, self.groups, p.classes, self.window * self.rows_per_view)
        factor = np.zeros((*rows, rows[-1]))
        factor[...] = np.eye(rows[-1])
        return WlsState(
            count=np.zeros(tracks, np.int64),
            features=np.zeros((tracks, self.window, p.networks, p.features)),
            zeta=np.zeros(rows),
            live=np.zeros(rows),
            factor=factor,
            ones=np.zeros(rows),
            values=np.zeros(rows),
        )

    def update(self, state: WlsState, views: Views) -> WlsState:
        checked = self.measured(views, state)
        new = take_rows(state, np.arange(len(views)))  # a copy, written to below
        full = np.flatnonzero(new.count == self.window)
        if len(full):
            put_rows(new, full, self._without_oldest(take_rows(new, full)))
        self._take_in(new, checked.bounded_features, checked.shifted)
        return new

    def _take_in(self, new: WlsState, features: np.ndarray, shifted: np.ndarray) -> None:
        """One more view of each track, in place.  [t, networks, D], [t, networks, classes]"""
        new.features[np.arange(len(features)), new.count] = features
        covariance = self._covariance(new.features, features)
        for part in range(self.rows_per_view):
            networks = slice(None) if self.groups > 1 else slice(part, part + 1)
            row = new.count * self.rows_per_view + part
            self._append(new, covariance[:, networks], shifted[:, networks], row)
        new.count[:] += 1

    def gaussian(self, state: WlsState) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the fused logits, zero before any view.  2 x [tracks, classes]"""
        information = np.einsum("tgmn,tgmn->tm", state.ones, state.ones)
        evidence = np.einsum("tgmn,tgmn->tm", state.ones, state.values)
        seen = np.maximum(information, 1e-300)
        return evidence / seen, np.where(information > 0, self.posterior.temperature / seen, 0.0)

    def predict(self, state: WlsState) -> np.ndarray:
        mean, variance = self.gaussian(state)
        samples = int(self.value["samples"])
        return monte_carlo(mean, variance, samples).pmf if samples else probit(mean, variance)

    def _covariance(self, kept: np.ndarray, newest: np.ndarray) -> np.ndarray:
        """Covariance of every row of the frame with the new view of each network, at T_theta = 1.

        kept [t, window, networks, D], newest [t, networks, D] -> [t, networks (new), classes, n]
        """
        solved = np.einsum("cmde,tce->tcmd", self._inverse, newest, optimize=True)  # A_c^-1 phi_c
        if self.posterior.cross is None:
            return np.einsum("twcd,tcmd->tcmw", kept, solved, optimize=True)
        across = np.empty(
            (len(newest), *self.posterior.cross.shape[:4])
        )  # [t, old network, new network, m, D]
        for e in range(self.posterior.networks):
            for c in range(self.posterior.networks):
                if e == c:
                    across[:, e, c] = solved[:, c]
                else:
                    right = np.einsum("mde,tme->tmd", self.posterior.cross[e, c], solved[:, c], optimize=True)
                    across[:, e, c] = np.einsum("mde,tme->tmd", self._inverse[e], right, optimize=True)
        blocks = np.einsum("twed,tecmd->tcmwe", kept, across, optimize=True)
        return blocks.reshape(*blocks.shape[:3], -1)

    def _append(self, new: WlsState, covariance: np.ndarray, shifted: np.ndarray, row: np.ndarray) -> None:
        """One more row for each track, in place.  covariance [t, g, m, n], shifted [t, g, m], row [t]"""
        tracks = np.arange(len(row))
        own = covariance[tracks, :, :, row]
        earlier = np.arange(covariance.shape[-1]) < row[:, None]  # [t, n]
        known = covariance * earlier[:, None, None, :] * new.live
        solved, independent = append_row(new.factor, known, own, row, SINGULAR)
        if self.value["strict"] and not independent.all():
            t, g, m = np.argwhere(~independent)[0]
            raise InputError(
                f"R is singular: row {row[t]} of track {t}, class {m} is a linear combination of earlier "
                "views (the same crop twice, or more views than features)"
            )
        delta = new.factor[tracks, :, :, row, row]
        one = (1.0 - np.einsum("tgmn,tgmn->tgm", solved, new.ones)) / delta
        value = (shifted - np.einsum("tgmn,tgmn->tgm", solved, new.values)) / delta
        new.live[tracks, :, :, row] = independent
        new.zeta[tracks, :, :, row] = shifted
        new.ones[tracks, :, :, row] = np.where(independent, one, 0.0)
        new.values[tracks, :, :, row] = np.where(independent, value, 0.0)

    def _without_oldest(self, state: WlsState) -> WlsState:
        factor = state.factor
        for _ in range(self.rows_per_view):
            factor = drop_first(factor)
        zeta, live = (_shift(array, self.rows_per_view) for array in (state.zeta, state.live))
        features = np.zeros_like(state.features)
        features[:, :-1] = state.features[:, 1:]
        shorter = WlsState(
            count=state.count - 1,
            features=features,
            zeta=zeta,
            live=live,
            factor=factor,
            ones=forward_solve(factor, live),
            values=forward_solve(factor, zeta * live),
        )
        # what only repeated the view that left now stands for it: such windows are factored again
        used = self.rows_per_view * (self.window - 1)
        repeated = np.flatnonzero((live[..., :used] == 0).any(axis=(1, 2, 3)))
        if len(repeated):
            put_rows(shorter, repeated, self._factored_again(take_rows(shorter, repeated)))
        return shorter

    def _factored_again(self, state: WlsState) -> WlsState:
        """The same views, taken in one after another."""
        new = self.initial(len(state.count))
        tracks, groups, classes, _ = state.zeta.shape
        # [t, groups, m, window, networks of a group] -> [t, window, networks, m]
        zeta = state.zeta.reshape(tracks, groups, classes, self.window, self.rows_per_view)
        zeta = zeta.transpose(0, 3, 1, 4, 2).reshape(tracks, self.window, -1, classes)
        for view in range(self.window - 1):
            self._take_in(new, state.features[:, view], zeta[:, view])
        return new


def _shift(array: np.ndarray, rows: int) -> np.ndarray:
    """The last axis moved to the front by `rows`, zeros behind."""
    out = np.zeros_like(array)
    out[..., :-rows] = array[..., rows:]
    return out
