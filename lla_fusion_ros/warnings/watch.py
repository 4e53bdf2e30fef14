"""The warnings of all tracks of an engine: their state rows, what holds now, and the verdicts."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.fusion.base import grown, put_rows, state_bytes, take_rows
from lla_fusion_ros.fusion.measure import MeasuredViews, measured
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.settings import FusionSettings
from lla_fusion_ros.views import Views
from lla_fusion_ros.warnings.judge import HOLD, levels, raised_reasons, rates, shares_of
from lla_fusion_ros.warnings.model import WarningModel
from lla_fusion_ros.warnings.monitor import Findings, Monitor
from lla_fusion_ros.warnings.verdict import IDENTITY_SWITCH, REASONS, Verdicts

SWITCH = REASONS.index(IDENTITY_SWITCH)
# Whether an object is known changes little from view to view, and is most of the cost: it is asked at each of
# the first views, then at every fifth.
FIRST_VIEWS = EVERY = 5
UNKNOWN = (0.0, 0.0, 1.0)  # information, ood_score, familiarity of a track not yet asked about


class Watch:
    """Without a warning model, or with `warnings` off, it watches nothing and every verdict is OK."""

    def __init__(self, model: WarningModel | None, posterior: EnsemblePosterior, rows: int) -> None:
        self._monitor = None if model is None else Monitor(model, posterior)
        self.rows = rows
        self._warned = np.zeros((rows, len(REASONS)), bool)
        self._hold = np.zeros(rows, np.int64)
        self._states: tuple = () if self._monitor is None else self._monitor.initial(rows)
        self._strangeness = np.tile(UNKNOWN, (rows, 1))  # as of the last time each track was asked about
        self._findings = _nothing(0)
        self._raised = np.zeros((0, len(REASONS)), bool)

    def is_warned(self, row: int) -> bool:
        return bool(self._warned[row].any())

    def bytes_per_track(self) -> int:
        """Memory of one track."""
        return round(sum(state_bytes(state) for state in self._states) / self.rows)

    def grow(self, extra: int) -> None:
        """Room for more tracks."""
        self.rows += extra
        self._warned = np.concatenate([self._warned, np.zeros((extra, len(REASONS)), bool)])
        self._hold = np.concatenate([self._hold, np.zeros(extra, np.int64)])
        self._strangeness = np.concatenate([self._strangeness, np.tile(UNKNOWN, (extra, 1))])
        if self._monitor is not None:
            empty = self._monitor.initial(extra)
            self._states = tuple(grown(s, e) for s, e in zip(self._states, empty, strict=True))

    def begin(self, rows: np.ndarray) -> None:
        """The tracks of these rows have seen nothing."""
        self._warned[rows] = False
        self._hold[rows] = 0
        self._strangeness[rows] = UNKNOWN
        if self._monitor is not None:
            for state, empty in zip(self._states, self._monitor.initial(len(rows)), strict=True):
                put_rows(state, rows, empty)

    def observe(
        self,
        rows: np.ndarray,
        views: MeasuredViews,
        camera: int,
        stamp: int,
        counts: np.ndarray,
        settings: FusionSettings,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Take in one view of each row; which show a switch now, and whose warning ended.  2 x [n] bool"""
        before = self._warned[rows]
        if self._monitor is None or not settings.warnings:
            self._findings, self._raised = _nothing(len(rows)), np.zeros_like(before)
        else:
            self._take_in(rows, views, camera, stamp)
            self._raised = raised_reasons(self._findings, counts, before, settings)
        switched = self._raised[:, SWITCH] & (self._hold[rows] == 0)
        self._keep_switches_visible(rows, switched)
        self._warned[rows] = self._raised
        if settings.restart_on_switch and switched.any():
            self._begin_with(rows[switched], views.take(switched), camera, stamp)
        return switched, before.any(axis=1) & ~self._raised.any(axis=1)

    def verdicts(
        self,
        pmf: np.ndarray,
        entropies: np.ndarray,
        views: np.ndarray,
        cameras: tuple[str, ...],
        settings: FusionSettings,
    ) -> Verdicts:
        """The verdicts of the rows last observed."""
        found = self._findings
        return Verdicts(
            pmf=pmf,
            entropy=entropies,
            mutual_information=found.information,
            ood_score=found.ood_score,
            familiarity=found.familiarity,
            consistency=found.consistency,
            agreement=found.agreement,
            views=views,
            cameras=cameras,
            level=levels(self._raised, shares_of(found), settings),
            raised=self._raised,
            thresholds=dict(zip(REASONS, rates(settings).tolist(), strict=True)),
        )

    def _take_in(self, rows: np.ndarray, views: MeasuredViews, camera: int, stamp: int) -> None:
        assert self._monitor is not None
        sums, recent = (take_rows(state, rows) for state in self._states)
        parts = self._monitor.update(sums, recent, views, camera, stamp)
        for state, part in zip(self._states, parts, strict=True):
            put_rows(state, rows, part)
        seen = parts[0].count
        due = np.flatnonzero((seen <= FIRST_VIEWS) | (seen % EVERY == 0))
        if len(due):
            self._strangeness[rows[due]] = self._monitor.strangeness(take_rows(parts[0], due))
        information, score, familiarity = self._strangeness[rows].T
        consistency, agreement = self._monitor.contradiction(parts[1])
        self._findings = Findings(information, score, familiarity, consistency, agreement)

    def _keep_switches_visible(self, rows: np.ndarray, switched: np.ndarray) -> None:
        """A switch is raised for HOLD further views: a single frame is easily missed."""
        left = self._hold[rows]
        self._raised[:, SWITCH] = switched | (left > 0)
        self._hold[rows] = np.where(switched, HOLD, np.maximum(left - 1, 0))

    def _begin_with(self, rows: np.ndarray, views: Views, camera: int, stamp: int) -> None:
        """Let the tracks of these rows begin again with their newest view."""
        assert self._monitor is not None
        checked = measured(views, self._monitor.posterior)
        parts = self._monitor.update(*self._monitor.initial(len(rows)), checked, camera, stamp)
        for state, part in zip(self._states, parts, strict=True):
            put_rows(state, rows, part)


def _nothing(tracks: int) -> Findings:
    """Findings of tracks that nobody watches."""
    zeros, ones = np.zeros(tracks), np.ones(tracks)
    return Findings(zeros, zeros, ones, ones, ones)
