"""The second half of the flow: views of tracked objects in, fused classes and warnings out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from lla_fusion_ros.engine.cost import check_cost
from lla_fusion_ros.engine.tracks import TrackStore
from lla_fusion_ros.fusion.base import Fuser, SumFuser
from lla_fusion_ros.fusion.hypotheses import Belief, ChangeRates, Hypotheses
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
    state_bytes,
    take_rows,
    widened,
)
from lla_fusion_ros.warnings.flow import UNREADABLE, TrackWarnings, rates
from lla_fusion_ros.warnings.model import AlarmTable, WarningModel
from lla_fusion_ros.warnings.result import Verdicts


class FusionModel(Protocol):
    """What the engine needs of a bundle."""

    def posterior(self) -> EnsemblePosterior: ...

    def fuser(self, name: str | None = None, window: int = 30) -> Fuser: ...

    def warning_model(self) -> WarningModel | None: ...

    def changing(self, named: str = "") -> np.ndarray: ...

    @property
    def reserved(self) -> tuple[str, ...]: ...

    def change_rates(self) -> ChangeRates: ...

    def change_alarm(self) -> AlarmTable: ...


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
        restarted: tracks that begin again, as their class or their object has changed.
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
        fused: of the fuser they ask for, empty; None: the one in use stays.
    """

    settings: FusionSettings
    changing: np.ndarray
    fused: _Fused | None = None


@dataclass(slots=True)
class _Fused:
    """A fuser and what it knows of all tracks, by row.

    Attributes:
        hypotheses: of the fuser; where that is no sum, of the pool.
        state: of a fuser that is no sum.
    """

    fuser: Fuser
    hypotheses: Hypotheses
    state: Any


class FusionEngine:
    """Tracks, fuser and warnings together. Not thread-safe: one caller at a time."""

    def __init__(self, model: FusionModel, settings: FusionSettings | None = None) -> None:
        self._model = model
        self._posterior, self._reserved = model.posterior(), len(model.reserved)
        self.settings = settings or FusionSettings()
        self._store = TrackStore(self.settings)
        self._changing = model.changing(self.settings.changing_classes)
        # One row per track in each of these; the store says which row is whose.
        self._fused = self._empty(self._make_fuser(self.settings))
        self._configure_changes()
        self._warnings = TrackWarnings(
            model.warning_model(),
            model.change_alarm(),
            self._posterior,
            self._store.allocated,
            self._reserved,
        )

    @property
    def fuser(self) -> Fuser:
        return self._fused.fuser

    @property
    def classes(self) -> int:
        return self._posterior.classes

    @property
    def tracks(self) -> int:
        """Tracks alive."""
        return len(self._store)

    def bytes_per_track(self) -> int:
        """Memory of one track: fuser and warnings; it does not grow with the track's length."""
        state = self._fused.state
        own = 0.0 if state is None else state_bytes(state) / self._store.allocated
        return round(own + self._fused.hypotheses.bytes_per_track()) + self._warnings.bytes_per_track()

    def configure(self, settings: FusionSettings) -> tuple[str, ...]:
        """New settings from the next frame on; a refused one leaves everything as it was.

        Returned are the tracks whose warning ends with that.
        """
        return self.take(self.prepare(settings))

    def prepare(self, settings: FusionSettings) -> Change:
        """Try new settings out and cost them; what cannot work is refused. Nothing changes before `take`."""
        changing = self._model.changing(settings.changing_classes)
        if (settings.fuser, settings.window) == (self.settings.fuser, self.settings.window):
            check_cost(self.fuser, settings)
            return Change(settings, changing)
        fuser = self._make_fuser(settings)
        try:
            return Change(settings, changing, self._empty(fuser))
        except MemoryError:
            raise InputError(f"fuser '{fuser.name}' does not fit into the memory of this machine") from None

    def take(self, change: Change) -> tuple[str, ...]:
        """Settings that `prepare` found good, from the next frame on.

        Another fuser or window forgets all tracks: their sums mean something else. Returned are those whose
        warning ends with that.
        """
        self._store.configure(change.settings)
        self.settings, self._changing = change.settings, change.changing
        if change.fused is not None:
            self._fused = change.fused
        self._configure_changes()
        return self.reset() if change.fused is not None else ()

    def widen(self, model: FusionModel) -> None:
        """Go on with a model that has further classes, before the reserved ones, and no fitted warnings."""
        self._model, self._posterior = model, model.posterior()
        self._changing = model.changing(self.settings.changing_classes)
        before, self._fused = self._fused, self._empty(self._make_fuser(self.settings))
        self._fused.hypotheses.take_over(before.hypotheses)
        if before.state is not None:
            self._fused.state = widened(before.state, self._fused.state, self._reserved)
        self._configure_changes()

    def reset(self) -> tuple[str, ...]:
        """Forget all tracks; returned are those whose warning ends with that."""
        ended = self._forget(self._store.clear())
        self._make_room()
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

        # Fuse, then judge; a track that turned out to show something else begins again.
        members = tuple(observation.groups.get(ids[i], ()) for i in admission.kept)
        lead, others = self._joined(rows, members, stamp)
        column = self._store.camera_index(camera)
        belief, pmf, own = self._fuse(rows, views, column, stamp, others)
        taken_over: tuple[str, ...] = ()
        if others:
            spoken_for = np.concatenate([rows[rows != lead], *(more for _, more in others)])
            spoken_for = spoken_for[~np.isin(spoken_for, lead)]
            taken_over = tuple(self._store.ids(spoken_for[self._warnings.hand_over(spoken_for)]))
        seen = self._seen(rows, others)
        total = seen.sum(axis=1)
        scores, decision = self._warnings.update(
            rows, views, column, stamp, total, self.settings, belief, lead, others, self._nothing(pmf)
        )
        if belief.ended.any():
            self._store.restart(rows[belief.ended], camera)
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
            restarted=tuple(names(lead[belief.object_ended])),
            removed=tuple(name for name, _ in admission.removed),
            dropped=admission.dropped,
            jumped=admission.jumped,
            notes=self.fuser.notes if (total > 1).any() else (),
            switched=tuple(names(lead[decision.switched])),
            own=own,
            members=members,
            changed=tuple(names(lead[belief.object_ended & belief.class_change])),
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

    def _nothing(self, pmf: np.ndarray) -> np.ndarray:
        """Where a reserved outcome leads.  [rows, classes] -> [rows] bool"""
        return np.asarray(pmf.argmax(axis=1) >= pmf.shape[1] - self._reserved)

    def _make_fuser(self, settings: FusionSettings) -> Fuser:
        fuser = self._model.fuser(settings.fuser or None, settings.window)
        check_cost(fuser, settings)
        # A view of zeros: factorisations that are made when first needed must not delay the first frame.
        fuser.predict(fuser.update(fuser.initial(1), zero_views(self._posterior)))
        return fuser

    def _empty(self, fuser: Fuser) -> _Fused:
        """Of tracks that have seen nothing."""
        rows, pooled = self._store.allocated, fuser
        if not isinstance(pooled, SumFuser):
            pooled = self._model.fuser("pool")
        assert isinstance(pooled, SumFuser)
        hypotheses = Hypotheses(pooled, ChangeRates(), self._changing, rows, self._reserved)
        return _Fused(fuser, hypotheses, None if pooled is fuser else fuser.initial(rows))

    def _configure_changes(self) -> None:
        given, settings = self._model.change_rates(), self.settings
        rates = replace(
            given,
            identity=settings.identity_hazard or given.identity,
            change=settings.class_hazard or given.change,
        )
        self._fused.hypotheses.configure(rates, self._changing, settings.moment, settings.restart_on_switch)

    def _fuse(
        self, rows: np.ndarray, views: MeasuredViews, camera: int, stamp: int, others: Others
    ) -> tuple[Belief, np.ndarray, np.ndarray]:
        """Add one view to each row; what is believed of a change, and the class distributions of the objects
        and of the tracks by themselves.  2 x [rows, classes]"""
        fused = self._fused
        belief = fused.hypotheses.update(rows, views, camera, stamp, others)
        if fused.state is None:
            return belief, belief.pmf, belief.own
        again = rows[belief.ended]
        put_rows(fused.state, again, fused.fuser.initial(len(again)))
        part = fused.fuser.update(take_rows(fused.state, rows), views)
        put_rows(fused.state, rows, part)
        own = fused.fuser.predict(part)
        return belief, fused.fuser.predict_joined(fused.state, rows, others) if others else own, own

    def _make_room(self) -> None:
        extra = self._store.allocated - self._fused.hypotheses.rows
        if extra > 0:
            self._fused.hypotheses.grow(extra)
            if self._fused.state is not None:
                self._fused.state = grown(self._fused.state, self.fuser.initial(extra))
        extra = self._store.allocated - self._warnings.rows
        if extra > 0:
            self._warnings.grow(extra)

    def _begin(self, rows: np.ndarray) -> tuple[str, ...]:
        """Empty the rows of tracks that begin; those warned of until now have passed `max_age`."""
        self._fused.hypotheses.begin(rows)
        if self._fused.state is not None:
            put_rows(self._fused.state, rows, self.fuser.initial(len(rows)))
        return tuple(self._store.ids(rows[self._warnings.begin(rows)]))

    def _forget(self, removed: Sequence[tuple[str, int]]) -> tuple[str, ...]:
        """End the warnings of forgotten tracks; those of them that were warned of."""
        warned = self._warnings.begin(np.array([row for _, row in removed], np.intp))
        return tuple(name for (name, _), was in zip(removed, warned, strict=True) if was)
