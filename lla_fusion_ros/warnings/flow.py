"""The warnings of all tracks of an engine, from views to decisions: false-alarm rates, hysteresis, levels."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.fusion.hypotheses import Belief
from lla_fusion_ros.fusion.measure import MeasuredViews, zero_views
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.pmf import about_classes
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.views import (
    Others,
    add,
    grown,
    joined_rows,
    put_rows,
    state_bytes,
    take_rows,
)
from lla_fusion_ros.warnings.model import RATES, AlarmTable, WarningModel
from lla_fusion_ros.warnings.result import (
    CAMERA_DISAGREEMENT,
    CANNOT_TELL,
    IDENTITY_SWITCH,
    OUT_OF_DISTRIBUTION,
    REASONS,
    TESTED,
    Decision,
    Level,
    Scores,
)
from lla_fusion_ros.warnings.scores import agreement, evidence, known_scores, weak_posterior
from lla_fusion_ros.warnings.state import Known, RecentViews, Standing, Sums

HYSTERESIS = 2.0  # a warning ends when the p-value is this many times the rate at which it began
ERROR_FACTOR = 0.1  # ten times rarer than a warning is an error
LIFE = 30  # views of the tracks that thresholds are measured on
RAREST = 1.001 * RATES[-1]  # no p-value is smaller than the last rate of an AlarmTable
HOLD = 1_000_000_000  # nanoseconds for which an identity switch stays visible: a frame is easily missed
UNKNOWN, UNREADABLE = REASONS.index(OUT_OF_DISTRIBUTION), REASONS.index(CANNOT_TELL)
SWITCH, DISAGREEMENT = REASONS.index(IDENTITY_SWITCH), REASONS.index(CAMERA_DISAGREEMENT)


class TrackWarnings:
    """State rows of all tracks, as many as the engine's. Without a model every track is found ordinary."""

    def __init__(
        self,
        model: WarningModel | None,
        change: AlarmTable,
        posterior: EnsemblePosterior,
        rows: int,
        reserved: int = 0,
    ) -> None:
        self._model, self._reserved = model, reserved
        self._change = change
        self._posterior = posterior
        self._standing = Standing.nothing(rows)
        self._known = Known.nothing(rows)
        if model is not None:
            self._weak = weak_posterior(posterior)
            known_scores(
                model, self._weak, Sums.of(zero_views(posterior))
            )  # factorise before the first frame
            self._sums, self._recent = self._empty(rows)

    @property
    def rows(self) -> int:
        return len(self._standing.until)

    def bytes_per_track(self) -> int:
        """Memory of one track."""
        kept = [self._standing, self._known]
        kept += [] if self._model is None else [self._sums, self._recent]
        return round(sum(state_bytes(state) for state in kept) / self.rows)

    def grow(self, extra: int) -> None:
        """Room for more tracks."""
        self._standing = grown(self._standing, Standing.nothing(extra))
        self._known = grown(self._known, Known.nothing(extra))
        if self._model is not None:
            sums, recent = self._empty(extra)
            self._sums, self._recent = grown(self._sums, sums), grown(self._recent, recent)

    def begin(self, rows: np.ndarray) -> np.ndarray:
        """The tracks of these rows have seen nothing; which of them were warned of.  [rows] bool"""
        warned = self._standing.warned[rows].any(axis=1)
        if len(rows) == 0:  # as in most frames
            return warned
        put_rows(self._standing, rows, Standing.nothing(len(rows)))
        self._forget_views(rows)
        return warned

    def update(
        self,
        rows: np.ndarray,
        views: MeasuredViews,
        camera: int,
        stamp: int,
        count: np.ndarray,
        settings: FusionSettings,
        belief: Belief,
        lead: np.ndarray | None = None,
        others: Others = (),
        nothing: np.ndarray | None = None,
    ) -> tuple[Scores, Decision]:
        """Take in one view of each row. A track whose past ended is asked about what it shows from now on.

        camera, stamp: of all views; count [rows]: views fused so far, this one included; lead [rows]: the row
        that speaks for the object, others: rows of further tracks that are the same object; nothing [rows]
        bool: what leads is that nothing is there
        """
        lead = rows if lead is None else lead
        if self._model is None or not settings.warnings:
            scores = Scores.ordinary(len(rows))
        else:
            if belief.ended.any():
                self._forget_views(np.append(rows[belief.ended], lead[belief.object_ended]))
            self._add(rows, views, camera, stamp)
            scores = self._scores(self._model, rows, lead, others, belief.began)
        if settings.warnings:
            scores.p_values[:, SWITCH] = self._change.p_value(belief.odds)
        before = take_rows(self._standing, lead)
        if nothing is None or not settings.warnings:
            nothing = np.zeros(len(rows), bool)
        decision, standing = decide(
            scores.p_values, count, before, settings, stamp, belief.class_change, nothing
        )
        put_rows(self._standing, lead, standing)
        return scores, decision

    def _add(self, rows: np.ndarray, views: MeasuredViews, camera: int, stamp: int) -> None:
        assert self._model is not None
        put_rows(self._sums, rows, add(take_rows(self._sums, rows), Sums.of(views)))
        said = evidence(about_classes(views.mean_pmf, self._reserved))
        recent = take_rows(self._recent, rows)
        put_rows(self._recent, rows, recent.pushed(said, camera, stamp))

    def hand_over(self, rows: np.ndarray) -> np.ndarray:
        """Others speak for these tracks from now on; which of them were warned of.  [rows] bool"""
        warned = self._standing.warned[rows].any(axis=1)
        if warned.any():
            put_rows(self._standing, rows, Standing.nothing(len(rows)))
        return warned

    def _scores(
        self, model: WarningModel, rows: np.ndarray, lead: np.ndarray, others: Others, began: np.ndarray
    ) -> Scores:
        recent = self._joined_recent(rows, others)
        due = due_for_scores(recent.count, self._known.views[lead])
        if due.any():
            sums = take_rows(joined_rows(self._sums, rows, others), due)
            put_rows(self._known, lead[due], Known(recent.count[due], *known_scores(model, self._weak, sums)))
        known = take_rows(self._known, lead)
        alike = np.ones(len(rows))
        p_values = np.column_stack([known.p_known, alike, agreement(model, recent, began), known.p_readable])
        return Scores(known.mutual_information, known.ood_score, p_values)

    def _joined_recent(self, rows: np.ndarray, others: Others) -> RecentViews:
        whole = take_rows(self._recent, rows)
        for places, more in others:
            put_rows(whole, places, take_rows(whole, places).merged(take_rows(self._recent, more)))
        return whole

    def _forget_views(self, rows: np.ndarray) -> None:
        put_rows(self._known, rows, Known.nothing(len(rows)))
        if self._model is not None:
            sums, recent = self._empty(len(rows))
            put_rows(self._sums, rows, sums)
            put_rows(self._recent, rows, recent)

    def _empty(self, rows: int) -> tuple[Sums, RecentViews]:
        assert self._model is not None
        p = self._posterior
        sums = Sums.zeros(rows, p.networks, p.classes, p.features)
        return sums, RecentViews.zeros(rows, p.classes - self._reserved)


def due_for_scores(views: np.ndarray, scored: np.ndarray) -> np.ndarray:
    """Which tracks of a frame to ask whether their object is known.  2 x [t] -> [t] bool

    The answer rests on means over all views, which change little from view to view, and asking is most of the
    cost: a track is asked at each of its first five views, then at every fifth, and from the 60th on more
    rarely as the means settle, at every thirtieth in the end. To ask one costs nearly as much as to ask all:
    where one is due, those that have waited half their time come along, and most frames ask none.
    views: of each track, this one included; scored: how many it had when last asked
    """
    patience = np.where(views <= 5, 1, 5 * np.clip(views // LIFE, 1, 6))
    age = views - scored
    return (2 * age >= patience) & (age >= patience).any()


def rates(settings: FusionSettings) -> dict[str, float]:
    """The false-alarm rate of each reason, in the order of TESTED."""
    unknown = settings.ood_false_alarm  # unknown object and bad picture are two answers to one question
    numbers = unknown, settings.switch_false_alarm, settings.disagreement_false_alarm, unknown
    return {reason: float(rate) for reason, rate in zip(TESTED, numbers, strict=True)}


def decide(
    p_values: np.ndarray,
    views: np.ndarray,
    before: Standing,
    settings: FusionSettings,
    stamp: int,
    class_change: np.ndarray,
    nothing: np.ndarray,
) -> tuple[Decision, Standing]:
    """What to say of the tracks of a frame, and what to remember of it.

    From one changing class to another is what such objects do, no warning. Cameras that contradict each other
    show no switch.
    p_values [t, tested], views [t] fused so far, class_change, nothing [t] bool
    """
    raised = raised_reasons(p_values, views, before.warned[:, : len(TESTED)], settings)
    raised[:, SWITCH] &= ~class_change & ~raised[:, DISAGREEMENT]
    until = np.where(raised[:, SWITCH], stamp + HOLD, before.until)
    raised[:, SWITCH] |= stamp < before.until
    level = np.where(nothing, Level.WARN, Level.OK)
    level = np.maximum(levels(raised, p_values, settings), level)
    raised = np.column_stack([raised, nothing])
    decision = Decision(
        raised=raised,
        level=level,
        switched=raised[:, SWITCH] & ~before.warned[:, SWITCH],
        ended=np.logical_and(before.warned.any(axis=1), ~raised.any(axis=1)),
    )
    return decision, Standing(raised, until)


def raised_reasons(
    p_values: np.ndarray, views: np.ndarray, warned: np.ndarray, settings: FusionSettings
) -> np.ndarray:
    """Which reasons hold now; one that held before ends only when its sign is clearly gone.

    The tests of the last few views get a new chance to err with every view: a track longer than LIFE is held
    to a rate that is as much smaller, so that the rate remains one per track. The out-of-distribution score
    settles instead of trying again. What is odd for a known object, but not for one in such pictures, is not
    called unknown: nobody can tell.
    p_values [t, tested], views [t] fused so far, warned [t, tested] with the last view -> [t, tested]
    """
    limit = np.where(warned, HYSTERESIS, 1.0) * list(rates(settings).values())
    limit[:, [SWITCH, DISAGREEMENT]] *= np.minimum(1.0, LIFE / np.maximum(views, 1))[:, None]
    raised = p_values <= np.maximum(limit, RAREST)
    raised[:, [UNKNOWN, UNREADABLE]] &= (views >= settings.min_views)[:, None]
    raised[:, UNREADABLE] &= ~raised[:, UNKNOWN]
    return raised


def levels(raised: np.ndarray, p_values: np.ndarray, settings: FusionSettings) -> np.ndarray:
    """OK, WARN, or ERROR: a switch, or ten times rarer than its rate; a bad picture is never an error.

    2 x [t, tested] -> [t] int
    """
    grave = raised & (p_values <= ERROR_FACTOR * np.array(list(rates(settings).values())))
    grave[:, SWITCH] = raised[:, SWITCH]
    grave[:, UNREADABLE] = False
    return np.where(grave.any(axis=1), Level.ERROR, np.where(raised.any(axis=1), Level.WARN, Level.OK))
