"""The second half of the flow: views of tracked objects in, fused classes and warnings out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from lla_fusion_ros.engine.cost import check_cost
from lla_fusion_ros.engine.tracks import TrackStore
from lla_fusion_ros.fusion.base import Fuser
from lla_fusion_ros.fusion.measure import MeasuredViews, measured, zero_views
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.pmf import entropy
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.views import (
    Others,
    Views,
    grown,
    put_rows,
    rows_of,
    state_bytes,
    take_rows,
    widened,
)
from lla_fusion_ros.warnings.flow import UNREADABLE, TrackWarnings, rates
from lla_fusion_ros.warnings.model import WarningModel
from lla_fusion_ros.warnings.result import Verdicts


class FusionModel(Protocol):
    """What the engine needs of a bundle."""

    def posterior(self) -> EnsemblePosterior: ...

    def fuser(self, name: str | None = None, window: int = 30) -> Fuser: ...

    def warning_model(self) -> WarningModel | None: ...

    def changing(self, named: str = "") -> np.ndarray: ...

    @property
    def reserved(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Observation:
    """One frame of one camera: the views of its tracked objects.

    Attributes:
        camera: name of the camera.
        stamp: message time in nanoseconds.
        ids: ids of the tracks, as many as there are views; a track is all that comes under one.
        views: one row per id.
        groups: the members of every track that is one object with others, oldest first. Evidence is kept by
            track and joined when asked for, so tracks can be joined and parted at any frame.
    """

    camera: str
    stamp: int
    ids: Sequence[str]
    views: Views
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FrameResult:
    """What one frame changed.

    Attributes:
        kept: positions in the observation that were fused; the arrays below have one row for each.   [n] int
        ids: their objects: a track by itself, or the oldest of those that are one.
        pmf: fused class distributions, each sums to 1.                                    [n, classes]
        verdicts: one for each.
        cleared: tracks whose warning ended with this frame, also because they were forgotten or aged out.
        restarted: tracks that begin again because of an identity switch.
        removed: tracks that were forgotten (idle, capacity, clock jump).
        dropped: detections that were not fused, by reason.
        jumped: the clock jumped back and all tracks were cleared.
        notes: what the user should know about the fuser in use.
        switched: tracks whose identity switch is seen with this frame, whether they begin again or not.
        own: what each track's own views say, without those of the others of its object.   [n, classes]
        members: the tracks of each object, where it has several; else empty.
        changed: tracks whose class changed, where it is one that does (`changing_classes`).
    """

    kept: np.ndarray
    ids: tuple[str, ...]
    pmf: np.ndarray
    verdicts: Verdicts
    cleared: tuple[str, ...]
    restarted: tuple[str, ...]
    removed: tuple[str, ...]
    dropped: dict[str, int]
    jumped: bool
    notes: tuple[str, ...]
    switched: tuple[str, ...]
    own: np.ndarray
    members: tuple[tuple[str, ...], ...]
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """Settings that were tried out and can be taken without fail.

    Attributes:
        changing: the classes that change under one id.  [classes] bool
        fuser: the fuser they ask for; None: the one in use stays.
        state: of that fuser, empty.
    """

    settings: FusionSettings
    changing: np.ndarray
    fuser: Fuser | None = None
    state: Any = None


class FusionEngine:
    """Tracks, fuser and warnings together. Not thread-safe: one caller at a time."""

    def __init__(self, model: FusionModel, settings: FusionSettings | None = None) -> None:
        self._model = model
        self._posterior = model.posterior()
        self.settings = settings or FusionSettings()
        self._fuser = self._make_fuser(self.settings)
        self._store = TrackStore(self.settings)
        # One row per track in each of these; the store says which row is whose.
        self._state: Any = self._fuser.initial(self._store.allocated)
        self._warnings = TrackWarnings(model.warning_model(), self._posterior, self._store.allocated)
        self._faded = np.zeros(self._store.allocated, np.int64)  # stamp up to which evidence has faded
        self._changes = np.zeros(self._store.allocated, bool)  # whether its class is one that changes
        self._changing = self._changing_classes(self.settings)

    @property
    def fuser(self) -> Fuser:
        return self._fuser

    @property
    def classes(self) -> int:
        return self._posterior.classes

    @property
    def tracks(self) -> int:
        """Tracks alive."""
        return len(self._store)

    def bytes_per_track(self) -> int:
        """Memory of one track: fuser and warnings; it does not grow with the track's length."""
        return round(state_bytes(self._state) / self._store.allocated) + self._warnings.bytes_per_track()

    def configure(self, settings: FusionSettings) -> tuple[str, ...]:
        """New settings from the next frame on; a refused one leaves everything as it was.

        Returned are the tracks whose warning ends with that.
        """
        return self.take(self.prepare(settings))

    def prepare(self, settings: FusionSettings) -> Change:
        """Try new settings out and cost them; what cannot work is refused. Nothing changes before `take`."""
        changing = self._changing_classes(settings)
        if (settings.fuser, settings.window) == (self.settings.fuser, self.settings.window):
            check_cost(self._fuser, settings)
            return Change(settings, changing)
        fuser = self._make_fuser(settings)
        try:
            return Change(settings, changing, fuser, fuser.initial(self._store.allocated))
        except MemoryError:
            raise InputError(f"fuser '{fuser.name}' does not fit into the memory of this machine") from None

    def take(self, change: Change) -> tuple[str, ...]:
        """Settings that `prepare` found good, from the next frame on.

        Another fuser or window forgets all tracks: their sums mean something else. Returned are those whose
        warning ends with that.
        """
        self._store.configure(change.settings)
        self.settings, self._changing = change.settings, change.changing
        if change.fuser is not None:
            self._fuser = change.fuser
        return self.reset(change.state) if change.fuser is not None else ()

    def widen(self, model: FusionModel) -> None:
        """Go on with a model that has further classes, before the reserved ones, and no fitted warnings."""
        self._model, self._posterior = model, model.posterior()
        self._fuser = self._make_fuser(self.settings)
        rows, reserved = self._store.allocated, len(model.reserved)
        self._state = widened(self._state, self._fuser.initial(rows), reserved)
        self._changing = self._changing_classes(self.settings)

    def reset(self, empty: Any = None) -> tuple[str, ...]:
        """Forget all tracks; returned are those whose warning ends with that.

        `empty` is a state of tracks that have seen nothing, where it is at hand.
        """
        ended = self._forget(self._store.clear())
        ready = empty is not None and rows_of(empty) == self._store.allocated
        self._state = empty if ready else self._fuser.initial(self._store.allocated)
        return ended

    def update(self, observation: Observation) -> FrameResult:
        """Fuse one frame of one camera. Views that do not fit raise InputError and change nothing."""
        camera, stamp, ids = observation.camera, observation.stamp, observation.ids
        views = measured(observation.views, self._posterior)
        if len(ids) != len(views):
            raise InputError(f"the frame has {len(ids)} track ids but {len(views)} views")

        # Which views count, and whose they are.
        admission = self._store.admit(camera, stamp, ids)
        rows = admission.rows
        if len(rows) < len(views):
            views = measured(views.take(admission.kept), self._posterior)
        forgotten = self._forget(admission.removed)
        self._make_room()
        aged = self._begin(rows[admission.fresh])

        # Fuse, then look for contradictions; a track that turned out to show another object begins again.
        members = tuple(observation.groups.get(ids[i], ()) for i in admission.kept)
        lead, others = self._joined(rows, members, stamp)
        if self._changing.any():
            self._fade(np.unique(np.concatenate([rows, *(more for _, more in others)])), stamp)
        own = pmf = self._fuse(rows, views)
        self._changes[rows] = own[:, self._changing].sum(axis=1) > 0.5
        taken_over: tuple[str, ...] = ()
        if others:
            pmf = self._fuser.predict_joined(self._state, rows, others)
            spoken_for = np.concatenate([rows[rows != lead], *(more for _, more in others)])
            spoken_for = spoken_for[~np.isin(spoken_for, lead)]
            taken_over = tuple(self._store.ids(spoken_for[self._warnings.hand_over(spoken_for)]))
        seen = self._seen(rows, others)
        total = seen.sum(axis=1)
        column = self._store.camera_index(camera)
        scores, decision = self._warnings.update(
            rows, views, column, stamp, total, self.settings, lead, others, self._changing
        )
        if decision.restart.any():
            again = rows[decision.restart]
            rest = [more[decision.restart[places]] for places, more in others]
            for part in rest:
                self._store.empty(part)
                put_rows(self._state, part, self._fuser.initial(len(part)))
            self._store.restart(again, camera)
            put_rows(self._state, again, self._fuser.initial(len(again)))
            newest = measured(views.take(decision.restart), self._posterior)
            pmf[decision.restart] = own[decision.restart] = self._fuse(again, newest)
            seen = self._seen(rows, others)
        # What nobody can read is never shown as sure: half of it is "any class".
        unreadable = decision.raised[:, [UNREADABLE]]
        pmf = np.where(unreadable, (pmf + 1 / pmf.shape[1]) / 2, pmf)

        names = self._store.ids
        return FrameResult(
            kept=admission.kept,
            ids=tuple(names(lead)),
            pmf=pmf,
            verdicts=Verdicts(
                pmf=pmf,
                entropy=entropy(pmf),
                mutual_information=scores.mutual_information,
                ood_score=scores.ood_score,
                p_values=scores.p_values,
                views=seen,
                cameras=tuple(self._store.cameras),
                level=decision.level,
                raised=decision.raised,
                thresholds=rates(self.settings),
            ),
            cleared=(*forgotten, *aged, *taken_over, *names(lead[decision.ended])),
            restarted=tuple(names(lead[decision.restart])),
            removed=tuple(name for name, _ in admission.removed),
            dropped=admission.dropped,
            jumped=admission.jumped,
            notes=self._fuser.notes if (total > 1).any() else (),
            switched=tuple(names(lead[decision.switched])),
            own=own,
            members=members,
            changed=tuple(names(lead[decision.changed])),
        )

    def _joined(
        self, rows: np.ndarray, members: Sequence[tuple[str, ...]], stamp: int
    ) -> tuple[np.ndarray, Others]:
        """The row that speaks for each object, its oldest track's, and the rows of its further tracks."""
        lead = rows.copy()
        places: list[list[int]] = []
        further: list[list[int]] = []
        for place, group in enumerate(members):
            known = self._store.member_rows(group, stamp)
            if not known:
                continue
            lead[place] = known[0]
            for number, row in enumerate(row for row in known if row != rows[place]):
                if number == len(places):
                    places.append([])
                    further.append([])
                places[number].append(place)
                further[number].append(row)
        return lead, [
            (np.array(a, np.intp), np.array(b, np.intp)) for a, b in zip(places, further, strict=True)
        ]

    def _seen(self, rows: np.ndarray, others: Others) -> np.ndarray:
        """Views fused so far of each object.  [rows, cameras]"""
        seen = self._store.views(rows)
        for places, more in others:
            seen[places] += self._store.views(more)
        return seen

    def _make_fuser(self, settings: FusionSettings) -> Fuser:
        fuser = self._model.fuser(settings.fuser or None, settings.window)
        check_cost(fuser, settings)
        # A view of zeros: factorisations that are made when first needed must not delay the first frame.
        fuser.predict(fuser.update(fuser.initial(1), zero_views(self._posterior)))
        return fuser

    def _changing_classes(self, settings: FusionSettings) -> np.ndarray:
        """[classes] bool"""
        return self._model.changing(settings.changing_classes) & (settings.class_half_life > 0)

    def _fuse(self, rows: np.ndarray, views: MeasuredViews) -> np.ndarray:
        """Add one view to each row; the fused class distributions.  [rows, classes]"""
        part = self._fuser.update(take_rows(self._state, rows), views)
        put_rows(self._state, rows, part)
        return self._fuser.predict(part)

    def _fade(self, rows: np.ndarray, stamp: int) -> None:
        """Evidence of those whose class changes counts half after each `class_half_life` of message time."""
        age = np.maximum(stamp - self._faded[rows], 0) / 1e9
        fades = self._changes[rows] & (self._faded[rows] > 0)
        factor = np.where(fades, 0.5 ** (age / self.settings.class_half_life), 1.0)
        self._faded[rows] = np.maximum(self._faded[rows], stamp)
        put_rows(self._state, rows, self._fuser.faded(take_rows(self._state, rows), factor))
        self._warnings.fade(rows, factor)

    def _make_room(self) -> None:
        extra = self._store.allocated - self._warnings.rows
        if extra > 0:
            self._faded = np.concatenate([self._faded, np.zeros(extra, np.int64)])
            self._changes = np.concatenate([self._changes, np.zeros(extra, bool)])
            self._state = grown(self._state, self._fuser.initial(extra))
            self._warnings.grow(extra)

    def _begin(self, rows: np.ndarray) -> tuple[str, ...]:
        """Empty the rows of tracks that begin; those warned of until now have passed `max_age`."""
        self._faded[rows] = 0
        put_rows(self._state, rows, self._fuser.initial(len(rows)))
        return tuple(self._store.ids(rows[self._warnings.begin(rows)]))

    def _forget(self, removed: Sequence[tuple[str, int]]) -> tuple[str, ...]:
        """End the warnings of forgotten tracks; those of them that were warned of."""
        warned = self._warnings.begin(np.array([row for _, row in removed], np.intp))
        return tuple(name for (name, _), was in zip(removed, warned, strict=True) if was)
