"""The warnings of all tracks of an engine: their state rows, what holds now, and the verdicts."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.fusion.measure import MeasuredViews, measured
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.rows import grown, put_rows, state_bytes, take_rows
from lla_fusion_ros.settings import FusionSettings
from lla_fusion_ros.views import Views
from lla_fusion_ros.warnings.judge import HOLD, LIFE, levels, raised_reasons, thresholds
from lla_fusion_ros.warnings.model import WarningModel
from lla_fusion_ros.warnings.monitor import Findings, Monitor
from lla_fusion_ros.warnings.verdict import CAMERA_DISAGREEMENT, IDENTITY_SWITCH, REASONS, Verdicts

SWITCH, DISAGREEMENT = REASONS.index(IDENTITY_SWITCH), REASONS.index(CAMERA_DISAGREEMENT)
NOTHING = np.zeros((0, len(REASONS)), bool)
NOBODY = np.zeros(0, np.intp)
UNKNOWN = (0.0, 0.0, 1.0, 0.0)  # information, ood_score, familiarity, views of a track not yet asked about
ASKED = 3  # the column of the views


def _patience() -> np.ndarray:
    """How many views old the answer may become whether a track's object is known.  [views] int

    It rests on means over all views, which change little from view to view, and asking is most of the cost:
    a track is asked about at each of its first five views, then at every fifth, and from the 60th on more
    rarely as the means settle, at every thirtieth in the end. The last entry holds for all longer tracks.
    """
    views = np.arange(6 * LIFE + 1)
    return np.where(views <= 5, 1, 5 * np.clip(views // LIFE, 1, 6))


PATIENCE = _patience()


class Watch:
    """Without a warning model, or with `warnings` off, it watches nothing and every verdict is OK."""

    def __init__(self, model: WarningModel | None, posterior: EnsemblePosterior, rows: int) -> None:
        self._monitor = None if model is None else Monitor(model, posterior)
        self.rows = rows
        self._warned = np.zeros((rows, len(REASONS)), bool)
        self._hold = np.zeros(rows, np.int64)  # further views for which a switch stays visible
        self._states: tuple = () if self._monitor is None else self._monitor.initial(rows)
        # as of the last time each track was asked about, and its number of views then.  [rows, 4]
        self._strangeness = np.tile(UNKNOWN, (rows, 1))
        self._findings = Findings.nothing(0)
        self._raised = NOTHING

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
        place: np.ndarray | slice,
        views: MeasuredViews,
        camera: int,
        stamp: int,
        counts: np.ndarray,
        settings: FusionSettings,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Take in one view of each row; which begin anew now, and whose warning ended.  2 x [n] bool

        `place` are the rows again, as a slice where they follow each other.
        Where cameras disagree, the newest view is one side of a contradiction, not a new object: to begin
        anew with it would show its class as if there were no other.
        """
        before, left = self._warned[place], self._hold[place]
        if self._monitor is None or not settings.warnings:
            self._findings, raised = Findings.nothing(len(rows)), np.zeros_like(before)
        else:
            self._take_in(place, views, camera, stamp)
            raised = raised_reasons(self._findings, counts, before, settings)
        self._raised = raised
        # nothing to remember, nothing to end
        if not (np.count_nonzero(before) or np.count_nonzero(left) or np.count_nonzero(raised)):
            return raised[:, SWITCH], raised[:, SWITCH]
        switched = raised[:, SWITCH] & (left == 0)
        ended = np.logical_or.reduce(before, axis=1)
        # A switch is raised for HOLD further views: a single frame is easily missed.
        raised[:, SWITCH] = switched | (left > 0)
        ended &= ~np.logical_or.reduce(raised, axis=1)
        self._hold[place] = np.where(switched, HOLD, np.maximum(left - 1, 0))
        self._warned[place] = raised
        anew = switched & ~raised[:, DISAGREEMENT] & settings.restart_on_switch
        if anew.any():
            self._begin_with(rows[anew], views.take(anew), camera, stamp)
        return anew, ended

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
            level=levels(self._raised, found.shares, settings),
            raised=self._raised,
            thresholds=thresholds(settings),
        )

    def _take_in(self, place: np.ndarray | slice, views: MeasuredViews, camera: int, stamp: int) -> None:
        assert self._monitor is not None
        all_sums, all_recent = self._states
        sums, recent = self._monitor.update(
            take_rows(all_sums, place), take_rows(all_recent, place), views, camera, stamp
        )
        put_rows(all_sums, place, sums)
        put_rows(all_recent, place, recent)
        strangeness = self._strangeness[place]
        about = _to_ask(sums.count, strangeness[:, ASKED])
        if len(about):
            asked = sums if len(about) == len(views) else take_rows(sums, about)
            strangeness[about, :ASKED] = self._monitor.strangeness(asked)
            strangeness[about, ASKED] = asked.count
            self._strangeness[place] = strangeness
        table = np.empty((len(views), 5))
        table[:, :3] = strangeness[:, :ASKED]
        table[:, 3:] = self._monitor.contradiction(recent)
        self._findings = Findings(table)

    def _begin_with(self, rows: np.ndarray, views: Views, camera: int, stamp: int) -> None:
        """Let the tracks of these rows begin again with their newest view."""
        assert self._monitor is not None
        checked = measured(views, self._monitor.posterior)
        parts = self._monitor.update(*self._monitor.initial(len(rows)), checked, camera, stamp)
        for state, part in zip(self._states, parts, strict=True):
            put_rows(state, rows, part)
        self._strangeness[rows, ASKED] = 0


def _to_ask(views: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Which tracks of a frame to ask about, of so many views and so many when last asked about.  [asked] int

    To ask about one costs nearly as much as about all: where one is due, those that have waited half their
    time come along. From then on they are due together, and most frames ask about none.
    """
    age, patience = views - asked, PATIENCE.take(views.astype(np.intp), mode="clip")
    if not np.count_nonzero(age >= patience):
        return NOBODY
    return (2 * age >= patience).nonzero()[0]
