"""The warnings of all tracks of an engine, from views to decisions."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.fusion.measure import MeasuredViews, measured, zero_views
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.rows import add, grown, put_rows, state_bytes, take_rows
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.warnings.contradiction import all_cameras_show, evidence, switch_statistic
from lla_fusion_ros.warnings.decide import LIFE, decide
from lla_fusion_ros.warnings.model import WarningModel
from lla_fusion_ros.warnings.result import Decision, Scores
from lla_fusion_ros.warnings.scores import contradiction_p_values, known_scores, weak_posterior
from lla_fusion_ros.warnings.state import Known, RecentViews, Standing, Sums


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
    ) -> tuple[Scores, Decision]:
        """Take in one view of each row.

        A track that is to begin again has done so here when this returns, with its newest view.
        camera, stamp: of all views; count [rows]: views fused so far, this one included
        """
        if self._model is None or not settings.warnings:
            scores = Scores.ordinary(len(rows))
        else:
            self._add(rows, views, camera, stamp)
            scores = self._scores(self._model, rows)
        decision, standing = decide(
            scores.p_values,
            count,
            take_rows(self._standing, rows),
            settings,
            lambda i: self._all_cameras_show(rows[i]),
        )
        put_rows(self._standing, rows, standing)
        if decision.restart.any():
            again = rows[decision.restart]
            self._forget_views(again)
            self._add(again, measured(views.take(decision.restart), self._posterior), camera, stamp)
        return scores, decision

    def _add(self, rows: np.ndarray, views: MeasuredViews, camera: int, stamp: int) -> None:
        assert self._model is not None
        put_rows(self._sums, rows, add(take_rows(self._sums, rows), Sums.of(views)))
        projected = self._model.space.project(views.bounded_features)
        recent = take_rows(self._recent, rows)
        put_rows(self._recent, rows, recent.pushed(evidence(views.mean_pmf), projected, camera, stamp))

    def _scores(self, model: WarningModel, rows: np.ndarray) -> Scores:
        views = self._recent.count[rows]
        due = rows[due_for_scores(views, self._known.views[rows])]
        if len(due):
            sums = take_rows(self._sums, due)
            put_rows(self._known, due, Known(self._recent.count[due], *known_scores(model, self._weak, sums)))
        known = take_rows(self._known, rows)
        contradiction = contradiction_p_values(model, take_rows(self._recent, rows))
        p_values = np.column_stack([known.p_known, *contradiction, known.p_readable])
        return Scores(known.mutual_information, known.ood_score, p_values)

    def _all_cameras_show(self, row: int) -> bool:
        """Whether the strongest change of a track is one that all its cameras show."""
        assert self._model is not None
        recent = take_rows(self._recent, np.array([row]))
        window = recent.evidence, recent.features, recent.count
        _, split = switch_statistic(*window, self._model.feature_weight)
        there = recent.present[0]
        after = int(split[0] - np.count_nonzero(~there))  # among the views that are there
        views = recent.evidence[0, there], recent.camera[0, there], recent.stamp[0, there]
        return after > 0 and all_cameras_show(*views, split=after, span=self._model.camera_span_ns)

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
