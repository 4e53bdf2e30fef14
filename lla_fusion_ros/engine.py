"""The second half of the flow: views of tracked objects in, fused classes and warnings out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lla_fusion_ros.errors import InputError
from lla_fusion_ros.fusion.base import Fuser
from lla_fusion_ros.fusion.measure import MeasuredViews, measured, zero_views
from lla_fusion_ros.pmf import entropy
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.products import last_axis_sum
from lla_fusion_ros.rows import grown, put_rows, state_bytes, take_rows
from lla_fusion_ros.settings import FusionSettings
from lla_fusion_ros.tracks import Admission, TrackKey, TrackStore
from lla_fusion_ros.views import Views
from lla_fusion_ros.warnings.model import WarningModel
from lla_fusion_ros.warnings.verdict import Verdicts
from lla_fusion_ros.warnings.watch import Watch


class FusionModel(Protocol):
    """What the engine needs of a bundle."""

    def posterior(self) -> EnsemblePosterior: ...

    def fuser(self, name: str | None = None, window: int = 30) -> Fuser: ...

    def warning_model(self) -> WarningModel | None: ...


@dataclass(frozen=True, slots=True)
class Observation:
    """One frame of one camera: the views of its tracked objects.

    Attributes:
        camera: name of the camera.
        stamp: message time in nanoseconds.
        ids: track ids, as many as there are views.
        views: one row per id.
    """

    camera: str
    stamp: int
    ids: Sequence[str]
    views: Views


@dataclass(frozen=True, slots=True)
class FrameResult:
    """What one frame changed.

    Attributes:
        kept: positions in the observation that were fused; the arrays below have one row for each.   [n] int
        ids: their track ids.
        pmf: fused class distributions, each sums to 1.                                    [n, classes]
        verdicts: one for each.
        cleared: tracks whose warning ended with this frame (or that were forgotten while warned of).
        restarted: tracks that began anew because of an identity switch.
        removed: tracks that were forgotten (idle, capacity, clock jump).
        dropped: detections that were not fused, by reason.
        jumped: the clock jumped back and all tracks were cleared.
        notes: what the user should know about the fuser in use.
    """

    kept: np.ndarray
    ids: tuple[str, ...]
    pmf: np.ndarray
    verdicts: Verdicts
    cleared: tuple[TrackKey, ...]
    restarted: tuple[TrackKey, ...]
    removed: tuple[TrackKey, ...]
    dropped: dict[str, int]
    jumped: bool
    notes: tuple[str, ...]


class FusionEngine:
    """Tracks, fuser and warnings together. Not thread-safe: one caller at a time."""

    def __init__(self, model: FusionModel, settings: FusionSettings | None = None) -> None:
        self._model = model
        self._posterior = model.posterior()
        self.settings = settings or FusionSettings()
        self.counters: Counter[str] = (
            Counter()
        )  # frames, views, clock_jumps, dropped_<reason> since the start
        self._fuser = self._make_fuser(self.settings)
        self._store = TrackStore(self.settings)
        self._watch = Watch(model.warning_model(), self._posterior, self._store.allocated)
        self._state: Any = self._fuser.initial(self._store.allocated)

    @property
    def fuser(self) -> Fuser:
        return self._fuser

    @property
    def tracks(self) -> int:
        """Tracks alive."""
        return len(self._store)

    def bytes_per_track(self) -> int:
        """Memory of one track: fuser, warnings and bookkeeping; it does not grow with the track's length."""
        return round(state_bytes(self._state) / self._store.allocated) + self._watch.bytes_per_track()

    def configure(self, settings: FusionSettings) -> None:
        """New settings from the next frame on; a refused one leaves everything as it was.

        Another fuser, window or scope begins all tracks anew: their sums or names mean something else.
        """
        renewed = (settings.fuser, settings.window) != (self.settings.fuser, self.settings.window)
        if renewed:
            self._fuser = self._make_fuser(settings)
        self._store.configure(settings)
        self.settings = settings
        if renewed:
            self.reset()

    def reset(self) -> None:
        """Forget all tracks."""
        self._store.clear()
        self._state = self._fuser.initial(self._store.allocated)
        self._watch.begin(np.arange(self._store.allocated))

    def update(self, observation: Observation) -> FrameResult:
        """Fuse one frame of one camera. Views that do not fit raise InputError and change nothing."""
        views = measured(observation.views, self._posterior)
        if len(observation.ids) != len(views):
            raise InputError(f"the frame has {len(observation.ids)} track ids but {len(views)} views")
        admission = self._store.admit(observation.camera, observation.stamp, observation.ids)
        self._count(admission)
        forgotten = [key for key, row in admission.removed if self._watch.is_warned(row)]
        self._prepare(admission)
        if len(admission.kept) < len(views):
            views = measured(views.take(admission.kept), self._posterior)
        rows = admission.rows
        pmf = self._fuse(admission.place, views)
        seen = self._store.views(rows)
        total = last_axis_sum(seen)
        switched, ended = self._observe(admission, views, observation, total)
        restarted: tuple[TrackKey, ...] = ()
        if np.count_nonzero(switched):
            pmf[switched] = self._fuse_anew(rows[switched], views, switched, observation.camera)
            restarted = tuple(self._store.keys(rows[switched]))
            seen = self._store.views(rows)
        cleared = self._store.keys(rows[ended]) if np.count_nonzero(ended) else ()
        return FrameResult(
            kept=admission.kept,
            ids=tuple([observation.ids[i] for i in admission.kept.tolist()]),
            pmf=pmf,
            verdicts=self._watch.verdicts(pmf, entropy(pmf), seen, tuple(self._store.cameras), self.settings),
            cleared=(*forgotten, *cleared),
            restarted=restarted,
            removed=tuple(key for key, _ in admission.removed),
            dropped=admission.dropped,
            jumped=admission.jumped,
            notes=self._fuser.notes if self._fuser.notes and (total > 1).any() else (),
        )

    def _make_fuser(self, settings: FusionSettings) -> Fuser:
        fuser = self._model.fuser(settings.fuser or None, settings.window)
        # A view of zeros: factorisations that are made when first needed must not delay the first frame.
        fuser.predict(fuser.update(fuser.initial(1), zero_views(self._posterior)))
        return fuser

    def _count(self, admission: Admission) -> None:
        self.counters["frames"] += 1
        self.counters["views"] += len(admission.kept)
        self.counters["clock_jumps"] += admission.jumped
        for reason, count in admission.dropped.items():
            self.counters[f"dropped_{reason}"] += count

    def _prepare(self, admission: Admission) -> None:
        """Make room for new tracks and empty the rows of those that begin."""
        extra = self._store.allocated - self._watch.rows
        if extra > 0:
            self._state = grown(self._state, self._fuser.initial(extra))
            self._watch.grow(extra)
        if np.count_nonzero(admission.fresh):
            fresh = admission.rows[admission.fresh]
            put_rows(self._state, fresh, self._fuser.initial(len(fresh)))
            self._watch.begin(fresh)

    def _fuse(self, place: np.ndarray | slice, views: MeasuredViews) -> np.ndarray:
        part = self._fuser.update(take_rows(self._state, place), views)
        put_rows(self._state, place, part)
        return self._fuser.predict(part)

    def _observe(
        self, admission: Admission, views: MeasuredViews, observation: Observation, total: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which tracks begin anew after an identity switch, and which warnings ended.  2 x [n] bool"""
        column = self._store.camera_index(observation.camera)
        rows, place = admission.rows, admission.place
        return self._watch.observe(rows, place, views, column, observation.stamp, total, self.settings)

    def _fuse_anew(
        self, rows: np.ndarray, views: MeasuredViews, chosen: np.ndarray, camera: str
    ) -> np.ndarray:
        """Begin switched tracks again with their newest view; their pmf from that view alone."""
        self.counters["identity_switches"] += len(rows)
        self._store.restart(rows, camera)
        put_rows(self._state, rows, self._fuser.initial(len(rows)))
        return self._fuse(rows, measured(views.take(chosen), self._posterior))
