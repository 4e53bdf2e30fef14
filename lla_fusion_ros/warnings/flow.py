"""The warnings of all tracks of an engine, from views to decisions: false-alarm rates, hysteresis, levels,
and which tracks begin again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lla_fusion_ros.fusion.measure import MeasuredViews, measured, zero_views
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.views import (
    Others,
    add,
    grown,
    joined_rows,
    put_rows,
    scaled,
    state_bytes,
    take_rows,
)
from lla_fusion_ros.warnings.contradiction import PERSISTENT, all_cameras_show, evidence, switch_statistic
from lla_fusion_ros.warnings.model import RATES, WarningModel
from lla_fusion_ros.warnings.result import (
    CAMERA_DISAGREEMENT,
    CANNOT_TELL,
    IDENTITY_SWITCH,
    OUT_OF_DISTRIBUTION,
    REASONS,
    Decision,
    Level,
    Scores,
)
from lla_fusion_ros.warnings.scores import contradiction_p_values, known_scores, weak_posterior
from lla_fusion_ros.warnings.state import Known, RecentViews, Standing, Sums

HYSTERESIS = 2.0  # a warning ends when the p-value is this many times the rate at which it began
ERROR_FACTOR = 0.1  # ten times rarer than a warning is an error
LIFE = 30  # views of the tracks that thresholds are measured on
RAREST = 1.001 * RATES[-1]  # no p-value is smaller than the last rate of an AlarmTable
HOLD = 5  # views for which an identity switch stays visible
UNKNOWN, UNREADABLE = REASONS.index(OUT_OF_DISTRIBUTION), REASONS.index(CANNOT_TELL)
SWITCH, DISAGREEMENT = REASONS.index(IDENTITY_SWITCH), REASONS.index(CAMERA_DISAGREEMENT)


class TrackWarnings:
    """State rows of all tracks, as many as the engine's. Without a model every track is found ordinary."""

    def __init__(self, model: WarningModel | None, posterior: EnsemblePosterior, rows: int) -> None:
        self._model = model
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
        return len(self._standing.hold)

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
        lead: np.ndarray | None = None,
        others: Others = (),
        changing: np.ndarray | None = None,
    ) -> tuple[Scores, Decision]:
        """Take in one view of each row.

        A track that is to begin again has done so here when this returns, with its newest view.
        camera, stamp: of all views; count [rows]: views fused so far, this one included; lead [rows]: the row
        that speaks for the object, others: rows of further tracks that are the same object; changing
        [classes] bool: those that change into each other under one id
        """
        lead = rows if lead is None else lead
        if self._model is None or not settings.warnings:
            scores = Scores.ordinary(len(rows))
        else:
            self._add(rows, views, camera, stamp)
            scores = self._scores(self._model, rows, lead, others)
        decision, standing = decide(
            scores.p_values,
            count,
            take_rows(self._standing, lead),
            settings,
            lambda i: self._all_cameras_show(i, rows, others),
            self._may_change(rows, others, changing),
        )
        put_rows(self._standing, lead, standing)
        if decision.restart.any():
            again = rows[decision.restart]
            members = [more[decision.restart[places]] for places, more in others]
            self._forget_views(np.concatenate([again, lead[decision.restart], *members]))
            self._add(again, measured(views.take(decision.restart), self._posterior), camera, stamp)
        return scores, decision

    def _add(self, rows: np.ndarray, views: MeasuredViews, camera: int, stamp: int) -> None:
        assert self._model is not None
        put_rows(self._sums, rows, add(take_rows(self._sums, rows), Sums.of(views)))
        projected = self._model.space.project(views.bounded_features)
        recent = take_rows(self._recent, rows)
        put_rows(self._recent, rows, recent.pushed(evidence(views.mean_pmf), projected, camera, stamp))

    def fade(self, rows: np.ndarray, factor: np.ndarray) -> None:
        """What these tracks have shown counts less.  2 x [rows]"""
        if self._model is not None:
            put_rows(self._sums, rows, scaled(take_rows(self._sums, rows), factor))

    def hand_over(self, rows: np.ndarray) -> np.ndarray:
        """Others speak for these tracks from now on; which of them were warned of.  [rows] bool"""
        warned = self._standing.warned[rows].any(axis=1)
        if warned.any():
            put_rows(self._standing, rows, Standing.nothing(len(rows)))
        return warned

    def _scores(self, model: WarningModel, rows: np.ndarray, lead: np.ndarray, others: Others) -> Scores:
        recent = self._joined_recent(rows, others)
        due = due_for_scores(recent.count, self._known.views[lead])
        if due.any():
            sums = take_rows(joined_rows(self._sums, rows, others), due)
            put_rows(self._known, lead[due], Known(recent.count[due], *known_scores(model, self._weak, sums)))
        known = take_rows(self._known, lead)
        contradiction = contradiction_p_values(model, recent, self._history(rows, others))
        p_values = np.column_stack([known.p_known, *contradiction, known.p_readable])
        return Scores(known.mutual_information, known.ood_score, p_values)

    def _joined_recent(self, rows: np.ndarray, others: Others) -> RecentViews:
        whole = take_rows(self._recent, rows)
        for places, more in others:
            put_rows(whole, places, take_rows(whole, places).merged(take_rows(self._recent, more)))
        return whole

    def _history(self, rows: np.ndarray, others: Others) -> np.ndarray:
        """Summed pmfs of all views of each object.  [rows, classes]"""
        history = self._sums.pmf[rows]
        for places, more in others:
            history[places] += self._sums.pmf[more]
        return history

    def _may_change(self, rows: np.ndarray, others: Others, changing: np.ndarray | None) -> np.ndarray:
        """Whether what each object showed so far and what it shows now are both changing classes.  [rows]"""
        if self._model is None or changing is None or not changing.any():
            return np.zeros(len(rows), bool)
        newest = self._joined_recent(rows, others).evidence[:, -PERSISTENT:].sum(axis=1)
        return changing[self._history(rows, others).argmax(axis=1)] & changing[newest.argmax(axis=1)]

    def _all_cameras_show(self, i: int, rows: np.ndarray, others: Others) -> bool:
        """Whether the strongest change of the i-th object is one that all its cameras show."""
        assert self._model is not None
        recent = take_rows(self._joined_recent(rows, others), np.array([i]))
        history = self._history(rows, others)[[i]]
        window = recent.evidence, recent.features, recent.count
        _, split = switch_statistic(*window, self._model.feature_weight, history)
        there = recent.present[0]
        views = recent.evidence[0, there], recent.camera[0, there], recent.stamp[0, there]
        after = int(split[0] - np.count_nonzero(~there))  # among the views that are there
        if split[0] == 0:  # the whole window speaks against what the track has shown
            old, after = int(history[0].argmax()), 0
        elif after > 0:
            old = int(views[0][:after].sum(axis=0).argmax())
        else:
            return False
        return all_cameras_show(*views, split=after, span=self._model.camera_span_ns, old=old)

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
        return sums, RecentViews.zeros(rows, p.classes, self._model.space.projection.shape[1])


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
    """The false-alarm rate of each reason, in the order of REASONS."""
    unknown = settings.ood_false_alarm  # unknown object and bad picture are two answers to one question
    numbers = unknown, settings.switch_false_alarm, settings.disagreement_false_alarm, unknown
    return {reason: float(rate) for reason, rate in zip(REASONS, numbers, strict=True)}


def decide(
    p_values: np.ndarray,
    views: np.ndarray,
    before: Standing,
    settings: FusionSettings,
    all_cameras_show: Callable[[int], bool],
    changing: np.ndarray | None = None,
) -> tuple[Decision, Standing]:
    """What to say of the tracks of a frame, and what to remember of it.

    A track begins again once all its cameras show the switch. Until then, and where cameras disagree, the
    newest view may be one side of a contradiction: to begin with it would show its class as if there were no
    other. From one changing class to another that is a class change, not warned of.
    p_values [t, reasons], views [t] fused so far; all_cameras_show: asked of a switched track, by position;
    changing [t] bool: it would be a class change
    """
    raised = raised_reasons(p_values, views, before.warned, settings)
    found = raised[:, SWITCH].copy()
    new = found & (before.hold == 0)
    raised[:, SWITCH] = new | (before.hold > 0)  # a single frame is easily missed
    pending = found & (new | before.pending)
    restart = pending & ~raised[:, DISAGREEMENT] & settings.restart_on_switch
    for i in np.flatnonzero(restart).tolist():
        restart[i] = all_cameras_show(i)
    expected = np.zeros(len(views), bool) if changing is None else changing
    raised[:, SWITCH] &= ~expected  # a change is what such objects do, no error
    decision = Decision(
        raised=raised,
        level=levels(raised, p_values, settings),
        switched=raised[:, SWITCH] & ~before.warned[:, SWITCH],
        changed=restart & expected,
        restart=restart,
        ended=np.logical_and(before.warned.any(axis=1), ~raised.any(axis=1)),
    )
    hold = np.where((new | restart) & ~expected, HOLD, np.maximum(before.hold - 1, 0))
    return decision, Standing(raised, hold, pending & ~restart)


def raised_reasons(
    p_values: np.ndarray, views: np.ndarray, warned: np.ndarray, settings: FusionSettings
) -> np.ndarray:
    """Which reasons hold now; one that held before ends only when its sign is clearly gone.

    The tests of the last few views get a new chance to err with every view: a track longer than LIFE is held
    to a rate that is as much smaller, so that the rate remains one per track. The out-of-distribution score
    settles instead of trying again. What is odd for a known object, but not for one in such pictures, is not
    called unknown: nobody can tell.
    p_values [t, reasons], views [t] fused so far, warned [t, reasons] with the last view -> [t, reasons]
    """
    limit = np.where(warned, HYSTERESIS, 1.0) * list(rates(settings).values())
    limit[:, [SWITCH, DISAGREEMENT]] *= np.minimum(1.0, LIFE / np.maximum(views, 1))[:, None]
    raised = p_values <= np.maximum(limit, RAREST)
    raised[:, [UNKNOWN, UNREADABLE]] &= (views >= settings.min_views)[:, None]
    raised[:, UNREADABLE] &= ~raised[:, UNKNOWN]
    return raised


def levels(raised: np.ndarray, p_values: np.ndarray, settings: FusionSettings) -> np.ndarray:
    """OK, WARN, or ERROR: a switch, or ten times rarer than its rate; a bad picture is never an error.

    2 x [t, reasons] -> [t] int
    """
    grave = raised & (p_values <= ERROR_FACTOR * np.array(list(rates(settings).values())))
    grave[:, SWITCH] = raised[:, SWITCH]
    grave[:, UNREADABLE] = False
    return np.where(grave.any(axis=1), Level.ERROR, np.where(raised.any(axis=1), Level.WARN, Level.OK))
