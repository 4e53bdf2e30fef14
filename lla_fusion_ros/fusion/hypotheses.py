"""Past or present: has a track changed, and what is shown of it meanwhile.

Each track keeps two pools of the same fuser, two run lengths of Bayesian change-point detection: *past*, all
views since it began or was last found changed, and *fresh*, the views since the likeliest later change. Every
view is judged by what each pool says, before it is added to both; what speaks for *fresh* are the log-odds of
a change, and what is published is the mixture of both pools by the probability c of a change. Above RESTART
*fresh* is all there is, and becomes *past*.

    p' = (1 - e) p + e / M, of the M named classes;  m the mass of p on them
    gain of a pool = m ln(M sum q p'), q what it says of the named classes: 0 for a view that says nothing
    odds <- odds + gain of fresh - gain of past; where ln h + ln(1 + e^odds) - ln(1 - h) - gain of past is
    more, it is that, and *fresh* begins anew with this view.  h = 1 - e^(-hazard seconds)

A camera that still sees the past keeps it from being forgotten for a second: that is a contradiction.

*A moment*: frames of different cameras whose stamps lie close together. All views of a moment are judged by
the pools before it and the hazard is paid once, so that their order does not matter. A late view is added to
both pools and begins nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lla_fusion_ros.fusion.along import pmf_along
from lla_fusion_ros.fusion.base import Fuser, SumFuser
from lla_fusion_ros.fusion.measure import MeasuredViews, measured
from lla_fusion_ros.types.views import (
    Columns,
    Others,
    Views,
    grown,
    put_rows,
    state_bytes,
    take_rows,
    widened,
)

RESTART = float(np.log(0.99 / 0.01))  # log-odds above which only what is fresh counts
FEWEST_FRESH = 2  # views before the past is forgotten
BITS = 62  # cameras of a moment that are told apart
LAB_STEP = 100_000_000  # nanoseconds between the views of a track that has no times
TOGETHER = 1_000_000_000  # nanoseconds within which changes of tracks are one of their object
TINY = 1e-300


@dataclass(frozen=True, slots=True)
class ChangeRates:
    """How often things change, and how wrong a sure view can be.

    Attributes:
        identity: chance a second that an id moves to another object.
        change: chance a second that an object of a changing class changes it.
        lapse: share of every view that is spread over all classes before it is judged.
    """

    identity: float = 0.1
    change: float = 1.0
    lapse: float = 0.003


@dataclass(frozen=True, slots=True)
class Belief:
    """What is believed of the tracks of a frame.

    Attributes:
        pmf: what is published of their objects.                                    [t, classes]
        own: the same from each track's own views.                                  [t, classes]
        odds: log-odds of a change of the object; -inf where there is no fresh.      [t]
        ended: the track's past ends with this frame.                               [t] bool
        object_ended: and with it that of its object.                               [t] bool
        class_change: past and fresh both lead with changing classes.               [t] bool
        began: stamp from which the past of the object counts, 0: all of it.        [t] int
    """

    pmf: np.ndarray
    own: np.ndarray
    odds: np.ndarray
    ended: np.ndarray
    object_ended: np.ndarray
    class_change: np.ndarray
    began: np.ndarray


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Of each track, before its newest moment and of it.   [rows]

    Attributes:
        past_views, fresh_views, now_views: in each pool before the moment, and in the moment.
        odds: log-odds of a change before the moment.
        paid: of the hazard, when *fresh* began.
        since, began: stamps where *fresh* and *past* begin; `began` is 0 where the past is all there was.
        first, last: stamps of the moment.
        newest: newest stamp before the moment.
        cameras: a bit for each that the moment has.
        looked: a bit for each camera so far; against: for those whose newest view speaks for the past.
        against_at: the newest stamp of a view that does.
        hazard: chance of a change a second, in the moment.
        of_past, of_fresh: the gains of the moment's views.
        told: that the past ended with this moment.
        announced: newest stamp at which that of the object ended.
        said_past, said_fresh: by the pools before the moment.   [rows, classes]
        shown_past, shown_fresh: by the pools with the moment.   [rows, classes]
    """

    past_views: np.ndarray
    fresh_views: np.ndarray
    now_views: np.ndarray
    odds: np.ndarray
    paid: np.ndarray
    since: np.ndarray
    began: np.ndarray
    first: np.ndarray
    last: np.ndarray
    newest: np.ndarray
    cameras: np.ndarray
    looked: np.ndarray
    against: np.ndarray
    against_at: np.ndarray
    hazard: np.ndarray
    of_past: np.ndarray
    of_fresh: np.ndarray
    told: np.ndarray
    announced: np.ndarray
    said_past: np.ndarray
    said_fresh: np.ndarray
    shown_past: np.ndarray
    shown_fresh: np.ndarray

    @classmethod
    def nothing(cls, rows: int, classes: int) -> _Numbers:
        def whole() -> np.ndarray:
            return np.zeros(rows, np.int64)

        def real() -> np.ndarray:
            return np.zeros(rows)

        def even() -> np.ndarray:
            return np.full((rows, classes), 1.0 / classes)

        return cls(
            whole(), whole(), whole(), np.full(rows, -np.inf), real(), whole(), whole(), whole(), whole(),
            whole(), whole(), whole(), whole(), whole(),
            real(), real(), real(), np.zeros(rows, bool), whole(),
            even(), even(), even(), even(),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Now:
    """The pools of some tracks with their newest moment; `change` are the odds before it `ends` the past."""

    past: np.ndarray
    fresh: np.ndarray
    past_views: np.ndarray
    fresh_views: np.ndarray
    odds: np.ndarray
    paid: np.ndarray
    since: np.ndarray
    began: np.ndarray
    change: np.ndarray
    ends: np.ndarray

    @property
    def gain(self) -> np.ndarray:
        """What the views since the change speak for it."""
        return self.odds - self.paid

    def settled(self, began: np.ndarray) -> _Now:
        """The same where a change that a track leans to is one that others of its object have settled.

        began: the stamp from which what others say counts.   [t]
        """
        done = (self.odds > 0) & (began >= self.since - TOGETHER)
        if not done.any():
            return self
        return replace(
            self,
            past=np.where(done[:, None], self.fresh, self.past),
            fresh=np.where(done[:, None], 0.0, self.fresh),
            fresh_views=self.fresh_views * ~done,
            odds=np.where(done, -np.inf, self.odds),
            began=np.where(done, self.since, self.began),
        )


class Hypotheses:
    """*Past* and *fresh* of all tracks of an engine, by row.

    Args:
        fuser: whose pools they are.
        changing: classes that change into each other under one id.   [classes] bool
        reserved: how many of the last classes are no named ones.
        moment: seconds within which frames of several cameras are one moment.
        restart: whether tracks begin again; if not, what is shown is the past alone.
    """

    def __init__(
        self,
        fuser: SumFuser,
        rates: ChangeRates,
        changing: np.ndarray,
        rows: int,
        reserved: int = 0,
        moment: float = 0.05,
        restart: bool = True,
    ) -> None:
        self.fuser = fuser
        self.columns = Columns(fuser.initial(1))
        self._classes = fuser.posterior.classes
        self._named = self._classes - reserved
        self.configure(rates, changing, moment, restart)
        self._pools = np.zeros((3, rows, self.columns.width))  # past, fresh, and the moment
        self._numbers = _Numbers.nothing(rows, self._classes)

    def configure(self, rates: ChangeRates, changing: np.ndarray, moment: float, restart: bool) -> None:
        """New numbers from the next view on."""
        self.rates, self._changing, self._restart = rates, changing, restart
        self._moment = round(moment * 1e9)

    @property
    def rows(self) -> int:
        return self._pools.shape[1]

    def bytes_per_track(self) -> float:
        return float(self._pools.nbytes + state_bytes(self._numbers)) / self.rows

    def take_over(self, before: Hypotheses) -> None:
        """All that is known of the tracks of another, which had fewer classes before the reserved ones."""
        reserved, rows = self._classes - self._named, before.rows
        empty = self.fuser.initial(rows)
        for number, pool in enumerate(before._pools):
            state = widened(before.columns.unpack(pool), empty, reserved)
            self._pools[number] = self.columns.pack(state)
        self._numbers = widened(before._numbers, _Numbers.nothing(rows, self._classes), reserved)

    def grow(self, extra: int) -> None:
        """Room for more tracks."""
        self._pools = np.concatenate([self._pools, np.zeros((3, extra, self.columns.width))], axis=1)
        self._numbers = grown(self._numbers, _Numbers.nothing(extra, self._classes))

    def begin(self, rows: np.ndarray) -> None:
        """The tracks of these rows have seen nothing."""
        if len(rows):
            self._pools[:, rows] = 0.0
            put_rows(self._numbers, rows, _Numbers.nothing(len(rows), self._classes))

    def update(
        self, rows: np.ndarray, views: MeasuredViews, camera: int, stamp: int, others: Others = ()
    ) -> Belief:
        """Take in one view of each row, of one frame; others: rows of further tracks of the same objects."""
        views = self.fuser.measured(views)
        contribution = self.fuser.contribution(views)
        part = self.columns.pack(contribution)
        pmf = self.fuser.predict(contribution)
        n, bit = self._numbers, 1 << (camera % BITS)
        known = n.now_views[rows] > 0
        inside = np.abs(stamp - n.first[rows]) <= self._moment
        inside &= known & ((n.cameras[rows] & bit) == 0)
        late = known & ~inside & (stamp <= n.last[rows])
        self._open(rows[~inside & ~late], stamp)
        if late.any():
            self._add_late(rows[late], part[late])
        new = rows if not late.any() else rows[~late]
        if len(new):
            if len(new) < len(rows):
                part, pmf = part[~late], pmf[~late]
            by_past = self._gain(n.said_past[new], pmf)
            by_fresh = self._gain(n.said_fresh[new], pmf)
            n.of_past[new] += by_past
            n.of_fresh[new] += by_fresh
            against = by_past > by_fresh
            n.against[new] = np.where(against, n.against[new] | bit, n.against[new] & ~bit)
            n.against_at[new] = np.where(against, stamp, n.against_at[new])
            n.looked[new] |= bit
            n.last[new] = np.maximum(n.last[new], stamp)
            n.cameras[new] |= bit
            n.now_views[new] += 1
            self._pools[2, new] += part
        return self._belief(rows, others)

    def _open(self, rows: np.ndarray, stamp: int) -> None:
        """A new moment of these tracks; the one before it is settled."""
        if not len(rows):
            return
        n, now = self._numbers, self._now(rows)
        self._pools[0, rows], self._pools[1, rows], self._pools[2, rows] = now.past, now.fresh, 0.0
        for name in ("past_views", "fresh_views", "odds", "paid", "since", "began"):
            getattr(n, name)[rows] = getattr(now, name)
        for name in ("now_views", "cameras", "of_past", "of_fresh", "told"):
            getattr(n, name)[rows] = 0
        if now.ends.any():
            n.looked[rows[now.ends]] = 0
        n.said_past[rows], n.said_fresh[rows] = n.shown_past[rows], n.shown_fresh[rows]
        n.newest[rows] = n.last[rows]
        n.first[rows] = n.last[rows] = stamp
        changes = n.said_past[rows][:, self._changing].sum(axis=1) > 0.5
        n.hazard[rows] = np.where(changes, self.rates.change, self.rates.identity)

    def _add_late(self, rows: np.ndarray, part: np.ndarray) -> None:
        n = self._numbers
        n.past_views[rows] += 1
        self._pools[0, rows] += part
        there = (n.fresh_views[rows] > 0)[:, None]
        self._pools[1, rows] += part * there
        n.fresh_views[rows] += there[:, 0]
        n.said_past[rows], n.said_fresh[rows] = self._said(self._pools[0, rows], self._pools[1, rows])

    def _gain(self, said: np.ndarray, pmf: np.ndarray) -> np.ndarray:
        """m ln(M sum q p'), what a pool gains by a view.  2 x [t, classes] -> [t]"""
        count, lapse = self._named, self.rates.lapse
        said, pmf = said[:, :count], pmf[:, :count]
        mass = pmf.sum(axis=1)
        overlap = (said * pmf).sum(axis=1) / np.maximum(mass * said.sum(axis=1), TINY)
        return mass * np.log(count * (1.0 - lapse) * overlap + lapse)

    def _now(self, rows: np.ndarray) -> _Now:
        n = take_rows(self._numbers, rows)
        before, fresh, moment = self._pools[:, rows]
        past = before + moment
        chance = -np.expm1(-n.hazard * np.maximum(n.last - n.newest, 0) / 1e9)
        chance = np.where(n.past_views > 0, chance, 0.0)
        with np.errstate(divide="ignore"):
            hazard, stays = np.log(chance), np.log1p(-chance)
        anew = hazard + np.logaddexp(0.0, n.odds)  # whatever was before may end
        goes_on = n.odds + stays + n.of_fresh
        begun = anew > goes_on
        likelier = np.maximum(anew, goes_on)
        lives = likelier > -np.inf
        change = np.where(lives, likelier - stays - n.of_past, -np.inf)
        kept = lives & ~begun
        fresh = fresh * kept[:, None] + moment * lives[:, None]
        fresh_views = n.fresh_views * kept + n.now_views * lives
        since = np.where(begun, n.first, n.since)
        ends = (change > RESTART) & (fresh_views >= FEWEST_FRESH) & self._restart
        odds, past_views, began = change, n.past_views + n.now_views, n.began
        if ends.any():  # as in few frames
            several = (n.looked & (n.looked - 1)) != 0
            contradicted = several & (n.against != 0) & (n.last - n.against_at <= TOGETHER)
            ends &= ~contradicted
            past = np.where(ends[:, None], fresh, past)
            fresh = np.where(ends[:, None], 0.0, fresh)
            past_views, fresh_views = np.where(ends, fresh_views, past_views), fresh_views * ~ends
            odds, began = np.where(ends, -np.inf, change), np.where(ends, since, began)
        paid = np.where(begun, hazard, n.paid)
        return _Now(past, fresh, past_views, fresh_views, odds, paid, since, began, change, ends)

    def _said(self, past: np.ndarray, fresh: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What two pools say.  2 x [t, width] -> 2 x [t, classes]"""
        both = self.fuser.predict(self.columns.unpack(np.concatenate([past, fresh])))
        return both[: len(past)], both[len(past) :]

    def _mixed(self, past: np.ndarray, fresh: np.ndarray, odds: np.ndarray) -> np.ndarray:
        if not self._restart:
            return past
        c = 1.0 / (1.0 + np.exp(-np.clip(odds, -700.0, 700.0)))[:, None]
        return (1.0 - c) * past + c * fresh

    def _belief(self, rows: np.ndarray, others: Others) -> Belief:
        n, now = self._numbers, self._now(rows)
        past, fresh = self._said(now.past, now.fresh)
        n.shown_past[rows], n.shown_fresh[rows] = past, fresh
        ended = now.ends & ~n.told[rows]
        n.told[rows] |= now.ends
        own = self._mixed(past, fresh, now.odds)
        class_change = np.zeros(len(rows), bool)
        if self._changing.any():
            newest = np.where(now.ends[:, None], past, fresh)
            class_change = self._changing[n.said_past[rows].argmax(axis=1)]
            class_change &= self._changing[newest.argmax(axis=1)]
        if not others:
            return Belief(own, own, now.change, ended, ended, class_change, now.began)
        pmf, odds, all_ended, began = self._joined(rows, others, now)
        object_ended = ended & all_ended & (n.announced[rows] < now.since)
        n.announced[rows] = np.where(object_ended, n.last[rows], n.announced[rows])
        for places, more in others:
            n.announced[more] = np.maximum(n.announced[more], n.announced[rows[places]])
        return Belief(pmf, own, odds, ended, object_ended, class_change, began)

    def _joined(
        self, rows: np.ndarray, others: Others, now: _Now
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """pmf and odds of objects of several tracks, whether all of their tracks saw the change, and `began`.

        An object changed when the track with the clearest gain did; tracks not seen since tell of its past
        only, and those not seen since its last change tell nothing. A track that leans to a change which
        others have settled has changed with them.
        """
        members = [(places, more, self._now(more)) for places, more in others]
        began = now.began.copy()
        for places, _, m in members:
            began[places] = np.maximum(began[places], m.began)
        now = now.settled(began)
        members = [(places, more, m.settled(began[places])) for places, more, m in members]

        gain, since, paid = now.gain.copy(), now.since.copy(), now.paid.copy()
        all_ended = np.ones(len(rows), bool)
        for places, more, m in members:
            clearer = m.gain > gain[places]
            for ours, theirs in ((gain, m.gain), (since, m.since), (paid, m.paid)):
                ours[places] = np.where(clearer, theirs, ours[places])
            began[places] = np.maximum(began[places], m.began)
            seen_since = self._numbers.last[more] >= now.since[places]
            all_ended[places] &= ~seen_since | (m.began >= now.since[places] - TOGETHER)
        past, fresh = now.past.copy(), now.fresh.copy()
        total = np.where(now.fresh_views > 0, now.gain, 0.0)
        change = np.where(now.ends, now.change, -np.inf)
        for places, more, m in members:
            last = self._numbers.last[more]
            past[places] += m.past * (last >= began[places])[:, None]
            counts = (m.fresh_views > 0) & (last >= since[places])
            fresh[places] += m.fresh * counts[:, None]
            total[places] += np.where(counts, m.gain, 0.0)
        odds = np.where(gain > -np.inf, paid + total, -np.inf)
        return self._mixed(*self._said(past, fresh), odds), np.maximum(odds, change), all_ended, began


def published_along(fuser: Fuser, views: Views, steps: int, rates: ChangeRates | None = None) -> np.ndarray:
    """The published pmf after every view; of fusers that are no sums their own, as if nothing ever changed.

    Flat views [tracks * steps, ...], each track's in order -> [tracks, steps, classes]
    """
    if not isinstance(fuser, SumFuser):
        return pmf_along(fuser, views, steps)
    return shown_along(fuser, views, steps, rates or ChangeRates()).pmf


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown along tracks, after each of their views.

    Attributes:
        pmf: [tracks, steps, classes]
        odds: of a change.   [tracks, steps]
    """

    pmf: np.ndarray
    odds: np.ndarray


def shown_along(
    fuser: SumFuser,
    views: Views,
    steps: int,
    rates: ChangeRates,
    changing: np.ndarray | None = None,
    reserved: int = 0,
) -> Shown:
    """What the engine shows after 1 ... `steps` views of each track of one camera, at ten views a second.

    Flat views [tracks * steps, ...], each track's in order.
    """
    tracks = len(views) // steps
    none = np.zeros(fuser.posterior.classes, bool)
    hypotheses = Hypotheses(fuser, rates, none if changing is None else changing, tracks, reserved)
    rows = np.arange(tracks)
    pmf = np.empty((tracks, steps, fuser.posterior.classes))
    odds = np.empty((tracks, steps))
    for step in range(steps):
        own = measured(views.take(slice(step, None, steps)), fuser.posterior)
        belief = hypotheses.update(rows, own, 0, (step + 1) * LAB_STEP)
        pmf[:, step], odds[:, step] = belief.pmf, belief.odds
    return Shown(pmf, odds)
