"""What a default fuser must not do, measured on views of known objects and on what the engine shows of them.

Be sure where sure views contradict each other; be sure of what a single odd frame shows; grow surer of one
frame that comes again and again; be surer than the number of objects it was fitted on supports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from lla_fusion_ros.fusion.along import pmf_along
from lla_fusion_ros.fusion.base import Fuser, SumFuser
from lla_fusion_ros.fusion.hypotheses import LAB_STEP, ChangeRates, Hypotheses
from lla_fusion_ros.fusion.measure import MeasuredViews, measured
from lla_fusion_ros.types.track_views import TrackViews

SURE = 0.99  # of a single view, as the mean pmf of the networks has it
PAIRS, REPEATED_VIEWS = 1000, 200  # so many are tried
EACH, TIMES = 15, 200  # views of each side of a contradiction; how often a frame comes again
FOLLOWED = 3  # views of another class after which it should lead
BEFORE_ODD = 5  # views of an object before one of another object is seen

MOST_MEDIAN = 0.7  # probability of either side of a contradiction, in half of the pairs
HIGH, MOST_HIGH = 0.9, 0.05  # and it may lie above HIGH in so many of them
MOST_NLL_RISE, MOST_CERTAINTY_RISE = 0.01, 0.02  # by repetition, mean over views


@dataclass(frozen=True, slots=True)
class Opposed:
    """Pairs of sure views of different objects and classes, judged as if seen from equally near.

    Attributes:
        first, second: rows of flat views.          [pairs] int
        classes: what each of the two says it is.   [pairs, 2] int
    """

    first: np.ndarray
    second: np.ndarray
    classes: np.ndarray

    def sides(self, views: MeasuredViews) -> list[MeasuredViews]:
        """The first views, and the second ones, all of one size: else size would decide."""
        return [_equally_near(views, rows) for rows in (self.first, self.second)]


@dataclass(frozen=True, slots=True)
class Safety:
    """What was measured of what the engine shows; high shares are the worse of one view each and EACH each.

    Attributes:
        pairs: contradictions tried; 0 where the networks are never so sure.
        contradiction_median: largest probability after EACH views of both sides in turn; after one of each a
            change may well be likelier than two misreadings.
        contradiction_high: the share of pairs above HIGH.
        cameras_high: share of pairs above HIGH where two cameras show them at one time.
        followed: share of pairs in which, EACH views of one side first, the other leads after FOLLOWED.
        odd_high: share of tracks that show the class of a sure odd frame above HIGH, after BEFORE_ODD views.
        nll_rise, certainty_rise: from one frame to the same frame TIMES times, mean over views.
        least_doubt: the smallest 1 - p of any track or repeated frame.
        needed_doubt: what the number of objects asks for.
    """

    pairs: int
    contradiction_median: float
    contradiction_high: float
    cameras_high: float
    followed: float
    odd_high: float
    nll_rise: float
    certainty_rise: float
    least_doubt: float
    needed_doubt: float

    def faults(self) -> tuple[str, ...]:
        """What is amiss, in words; empty for a fuser that may be a default."""
        checks = (
            (
                self.contradiction_median <= MOST_MEDIAN and self.contradiction_high <= MOST_HIGH,
                f"sure views that contradict each other give p > {HIGH} in {self.contradiction_high:.0%} of "
                f"pairs (median {self.contradiction_median:.2f})",
            ),
            (
                self.cameras_high <= MOST_HIGH,
                f"cameras that contradict each other give p > {HIGH} in {self.cameras_high:.0%} of pairs",
            ),
            (
                self.odd_high <= MOST_HIGH,
                f"one odd frame after {BEFORE_ODD} others gives p > {HIGH} in {self.odd_high:.0%} of tracks",
            ),
            (
                self.nll_rise <= MOST_NLL_RISE and self.certainty_rise <= MOST_CERTAINTY_RISE,
                f"the same frame {TIMES} times raises certainty by {self.certainty_rise:.3f} "
                f"and NLL by {self.nll_rise:.3f}",
            ),
            (
                self.least_doubt >= self.needed_doubt * (1 - 1e-6),
                f"1 - p falls to {self.least_doubt:.1e}, the objects support {self.needed_doubt:.1e}",
            ),
        )
        return tuple(text for good, text in checks if not good)

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {**asdict(self), "faults": list(self.faults())}


def least_lapse(objects: int) -> float:
    """The share of misread objects that so many well-read ones leave probable: half an object (Jeffreys)."""
    return 0.5 / (objects + 1)


def opposed_views(
    views: MeasuredViews, tracks: TrackViews, count: int = PAIRS, seed: int = 0
) -> Opposed | None:
    """Random pairs of sure views that contradict each other; None where there are none."""
    source = np.repeat(tracks.source, tracks.longest)
    first, second = _sure_views(views, tracks, 8 * count, seed).reshape(2, -1)
    differ = (views.top[first] != views.top[second]) & (source[first] != source[second])
    first, second = first[differ][:count], second[differ][:count]
    if len(first) == 0:
        return None
    return Opposed(first, second, np.stack([views.top[first], views.top[second]], axis=1))


def _sure_views(views: MeasuredViews, tracks: TrackViews, count: int, seed: int) -> np.ndarray:
    """Rows of random sure views, none where there are none.  [count] int

    Every object counts the same: one that is seen long and well would hide those that are barely sure.
    """
    rng = np.random.default_rng(seed)
    sure = rng.permutation(np.flatnonzero(tracks.real.ravel() & (views.mean_pmf.max(axis=1) >= SURE)))
    if len(sure) == 0:
        return sure
    source = np.repeat(tracks.source, tracks.longest)[sure]
    _, of_view, size = np.unique(source, return_inverse=True, return_counts=True)
    share = 1.0 / size[of_view]
    return rng.choice(sure, count, p=share / share.sum())


def safety_of(fuser: Fuser, tracks: TrackViews, views: MeasuredViews, seed: int = 0) -> Safety:
    """Try the fuser on contradictions, repetitions and whole tracks; `views` are the tracks' own, flat."""
    opposed = opposed_views(views, tracks, seed=seed)
    median = high = cameras = 0.0
    second_first = 1.0
    if opposed is not None:
        surest = contradicted(fuser, views, opposed).max(axis=-1)  # [2, pairs]
        median = float(np.median(surest[-1]))
        high = float((surest > HIGH).mean(axis=1).max())
        cameras = float((disagreed(fuser, views, opposed).max(axis=-1) > HIGH).mean())
        second_first = float(followed(fuser, views, opposed).mean())
    odd = odd_frame(fuser, tracks, views, seed)
    label = np.repeat(tracks.label, tracks.longest)
    known = np.flatnonzero(tracks.real.ravel() & (label >= 0))
    rows = np.random.default_rng(seed).permutation(known)[:REPEATED_VIEWS]
    once, again = repeated(fuser, views, rows)
    truth = np.arange(len(rows)), label[rows]
    nll_once, nll_again = (-np.log(np.maximum(pmf[truth], 1e-12)).mean() for pmf in (once, again))
    ends = pmf_along(fuser, views, tracks.longest)[tracks.real]
    surest_p = max(float(pmf.max()) for pmf in (once, again, ends))
    return Safety(
        pairs=0 if opposed is None else len(opposed.first),
        contradiction_median=median,
        contradiction_high=high,
        cameras_high=cameras,
        followed=second_first,
        odd_high=float((odd > HIGH).mean()) if len(odd) else 0.0,
        nll_rise=float(nll_again - nll_once),
        certainty_rise=float((again.max(axis=1) - once.max(axis=1)).mean()),
        least_doubt=1.0 - surest_p,
        needed_doubt=least_lapse(tracks.objects),
    )


def published(fuser: Fuser, frames: Sequence[MeasuredViews], cameras: int = 1) -> list[np.ndarray]:
    """What is shown after each frame, ten moments a second; each of so many cameras has one in a moment."""
    tracks, shown = len(frames[0]), []
    if not isinstance(fuser, SumFuser):
        state = fuser.initial(tracks)
        for views in frames:
            state = fuser.update(state, views)
            shown.append(fuser.predict(state))
        return shown
    nothing_changes = np.zeros(fuser.posterior.classes, bool)
    hypotheses = Hypotheses(fuser, ChangeRates(), nothing_changes, tracks)
    for number, views in enumerate(frames):
        stamp = (number // cameras + 1) * LAB_STEP
        shown.append(hypotheses.update(np.arange(tracks), views, number % cameras, stamp).pmf)
    return shown


def contradicted(fuser: Fuser, views: MeasuredViews, opposed: Opposed) -> np.ndarray:
    """The pmf after one view of each side in turn, and after EACH views of each.  [2, pairs, classes]"""
    shown = published(fuser, opposed.sides(views) * EACH)
    return np.stack([shown[1], shown[-1]])


def disagreed(fuser: Fuser, views: MeasuredViews, opposed: Opposed) -> np.ndarray:
    """The same from two cameras that look at one time, after EACH views of each.  [pairs, classes]"""
    return published(fuser, opposed.sides(views) * EACH, cameras=2)[-1]


def followed(fuser: Fuser, views: MeasuredViews, opposed: Opposed) -> np.ndarray:
    """Whether after EACH views of the first, then FOLLOWED of the second, the second leads.  [pairs] bool"""
    first, second = opposed.sides(views)
    pmf = published(fuser, [first] * EACH + [second] * FOLLOWED)[-1]
    return pmf.argmax(axis=1) == opposed.classes[:, 1]


def repeated(fuser: Fuser, views: MeasuredViews, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pmf after some views alone, and after TIMES times the same.  2 x [rows, classes]"""
    shown = published(fuser, [measured(views.take(rows), views.posterior)] * TIMES)
    return shown[0], shown[-1]


def odd_frame(fuser: Fuser, tracks: TrackViews, views: MeasuredViews, seed: int = 0) -> np.ndarray:
    """The probability of the class that one sure view of another object shows, after BEFORE_ODD views.

    Empty where no track is so long or no view so sure.  [tracks tried]
    """
    odd = _sure_views(views, tracks, PAIRS, seed)
    long = np.flatnonzero((tracks.steps >= BEFORE_ODD) & (tracks.label >= 0))
    if len(odd) == 0 or len(long) == 0:
        return np.zeros(0)
    shown = np.random.default_rng(seed).choice(long, PAIRS)
    other = tracks.source[odd // tracks.longest] != tracks.source[shown]
    differ = other & (views.top[odd] != tracks.label[shown])
    odd, shown = odd[differ], shown[differ]
    if len(odd) == 0:
        return np.zeros(0)
    seen = (*(shown * tracks.longest + step for step in range(BEFORE_ODD)), odd)
    pmf = published(fuser, [_equally_near(views, rows) for rows in seen])[-1]
    return pmf[np.arange(len(odd)), views.top[odd]]


def _equally_near(views: MeasuredViews, rows: np.ndarray) -> MeasuredViews:
    """Some of the views, as if nothing were known of the size of their boxes."""
    return measured(replace(views.take(rows), size=None), views.posterior)
