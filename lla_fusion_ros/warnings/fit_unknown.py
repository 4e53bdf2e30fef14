"""Fit what tells unknown objects from known ones under every condition they are met in.

A logistic regression over scores: known tracks against background, what detectors deliver by mistake, and
against sign-like outliers. A linear regression tells which score is usual for a known object in pictures of
some quality, to which small boxes add; what is odd, but not beyond that, is not unknown, but "cannot tell".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from lla_fusion_ros.fusion.along import running_sums, views_of
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.types.views import take_rows
from lla_fusion_ros.warnings.model import (
    MOST_STANDARD,
    NEVER,
    RATES,
    SCORES,
    AlarmTable,
    Detector,
    Distance,
    FeatureSpace,
    Usual,
    quality_columns,
)
from lla_fusion_ros.warnings.scores import SETTLED, score_table
from lla_fusion_ros.warnings.state import Sums

FITTED_LENGTHS = (1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 40, 50)
MIN_VIEWS = 3  # thresholds are for tracks of at least so many views, the default of the setting `min_views`
RIDGE, PICTURE_RIDGE = 1e-2, 1e-3  # of the regressions: per mean loss, on standardised columns
CHUNK = 128  # tracks at a time, for memory
# The scores that enter: with more of them known tracks in some conditions look odd that no stranger is like.
TELLING = ("neighbours", "energy")
RARE = 0.02  # share of known tracks whose score is followed over the number of their views
FOLLOWED = 0.5  # share of its fall that is followed: more finds unknown objects later, but more of them
BEST_PICTURES = 0.5  # share of the pictures of known tracks that count as equally good, the best ones
UNREADABLE_WEIGHT = 2.0  # of pictures too bad to tell, among what the usual score is fitted on
NEAR = 24.0  # pixels: smaller boxes may add to the usual score
MOST_RISE = 64.0  # score that a box of half that side may add
FAR_RATES = (0.05, 0.02, 0.01)
SMALLEST_SHARE = 0.05  # of the small boxes that are smaller than those a bundle is fitted for
ALLOWANCE = 1.75  # times the stated rate in any one regime or condition


@dataclass(frozen=True, slots=True)
class ScoreRows:
    """Scores of tracks after several numbers of views.

    Attributes:
        values: [rows, scores]
        quality: mean over the views.  [rows, qualities]
        log_size: mean ln of the box's side, NaN where it is not known.  [rows]
        track, length: number of the track, and of its views.  [rows]
        group: the regime or condition a track was seen under, or the kind of stranger it is.  [rows]
        source: the physical object.  [rows]
    """

    values: np.ndarray
    quality: np.ndarray
    log_size: np.ndarray
    track: np.ndarray
    length: np.ndarray
    group: np.ndarray
    source: np.ndarray

    @classmethod
    def joined(cls, parts: Sequence[ScoreRows]) -> ScoreRows:
        """Rows of different tracks as one."""
        first = np.cumsum([0, *(part.track.max() + 1 for part in parts)])
        moved = [replace(part, track=part.track + start) for part, start in zip(parts, first, strict=False)]
        return cls(*(np.concatenate([getattr(part, f.name) for part in moved]) for f in fields(cls)))

    def take(self, rows: np.ndarray) -> ScoreRows:
        return ScoreRows(*(getattr(self, f.name)[rows] for f in fields(self)))

    def weights(self) -> np.ndarray:
        """Every group weighs the same, and all rows of one the same; they sum to 1.  [rows]"""
        _, of_row, rows = np.unique(self.group, return_inverse=True, return_counts=True)
        return 1.0 / (len(rows) * rows[of_row])

    def alarm(self, score: np.ndarray) -> AlarmTable:
        """The stated rates, and those in each group, of tracks that ever reach a score in time."""
        late = np.flatnonzero(self.length >= min(MIN_VIEWS, int(self.length.max())))
        tracks, first, of_row = np.unique(self.track[late], return_index=True, return_inverse=True)
        largest = np.full(len(tracks), -np.inf)
        np.maximum.at(largest, of_row, score[late])
        return AlarmTable.measure_worst(largest, self.group[late][first], self.source[late][first], ALLOWANCE)


def score_rows(
    parts: Sequence[tuple[FeatureSpace, np.ndarray]], weak: EnsemblePosterior, tracks: TrackViews
) -> ScoreRows:
    """The scores at every fitted length; each part says which tracks are compared with its space."""
    found: list[tuple[np.ndarray, ...]] = []
    lengths = [length for length in FITTED_LENGTHS if length <= tracks.longest]
    for space, rows in parts:
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            views = views_of(weak, tracks.take(chunk))
            sums = running_sums(Sums.of(views), len(chunk), tracks.longest, lengths)
            for place, length in enumerate(lengths):
                chosen = np.flatnonzero(tracks.steps[chunk] >= length)
                if len(chosen):
                    means = take_rows(sums, chosen * len(lengths) + place).means()
                    values, _ = score_table(space, weak, means)
                    seen = np.full(len(chosen), length)
                    found.append((values, means.quality, means.log_size, chunk[chosen], seen))
    scored, pictures, sizes, track, seen = (np.concatenate(column) for column in zip(*found, strict=True))
    return ScoreRows(scored, pictures, sizes, track, seen, tracks.regime[track], tracks.source[track])


def fit_unknown(
    known: ScoreRows,
    strange: ScoreRows,
    unreadable: ScoreRows | None,
    distant: ScoreRows | None = None,
) -> tuple[Detector, Usual | None, dict[str, float]]:
    """What tells unknown objects, the scores usual in pictures, and how well each score tells by itself."""
    used = np.isin(SCORES, TELLING)
    told = fit_detector(known.values, known.weights(), strange.values, strange.weights(), used)
    told = settling(told, known)
    score = told(known.values)
    unknown = replace(told, alarm=known.alarm(score))
    usual = None if unreadable is None else fit_usual(told, known, strange, unreadable)
    if usual is not None and distant is not None and np.isfinite(distant.log_size).all():
        usual = replace(usual, distance=fit_distance(told, usual, distant))
    quality = {
        f"auroc_{name}": auroc(known.values[:, i], strange.values[:, i]) for i, name in enumerate(SCORES)
    }
    return unknown, usual, quality | {"auroc_combined": auroc(score, told(strange.values))}


def settling(told: Detector, known: ScoreRows) -> Detector:
    """The detector with a weight for the number of views: the more, the less odd may a known track look.

    Single frames are odd by chance, means of many are not. What the rare known track scores falls with its
    views, up to SETTLED of them; the score gains a share FOLLOWED of that, so that many views tell more.
    """
    late = (known.length >= MIN_VIEWS) & (known.length <= SETTLED)
    lengths = np.unique(known.length[late])
    if len(lengths) < 2:
        return told
    longest = known.track[known.length == lengths[-1]]
    followed = known.take(np.flatnonzero(late & np.isin(known.track, longest)))
    score = told(followed.values)
    rare = [_rare(score[at], followed.group[at]) for at in followed.length == lengths[:, None]]
    fall = max(-float(np.polyfit(np.log(lengths), rare, 1)[0]), 0.0)
    coefficients, column = told.coefficients.copy(), SCORES.index("length")
    coefficients[column] = FOLLOWED * fall * told.scale[column]
    return replace(told, coefficients=coefficients)


def _rare(score: np.ndarray, group: np.ndarray) -> float:
    """What the share RARE of tracks is beyond, mean over the groups.  2 x [tracks]"""
    return float(np.mean([np.quantile(score[group == name], 1.0 - RARE) for name in np.unique(group)]))


def fit_usual(told: Detector, known: ScoreRows, strange: ScoreRows, unreadable: ScoreRows) -> Usual:
    """The mean score of known objects by the quality of their pictures, and thresholds of what is beyond it.

    What a picture shows changes its measured quality, too: where background is seen under the condition of
    known objects, the score usual in its pictures is theirs.
    """
    score = told(known.values)
    kinds = [(known, score, 1.0), (unreadable, told(unreadable.values), UNREADABLE_WEIGHT)]
    for group in np.intersect1d(strange.group, known.group):
        rows = strange.take(np.flatnonzero(strange.group == group))
        kinds.append((rows, np.full(len(rows.track), score[known.group == group].mean()), 1.0))
    columns = np.concatenate([quality_columns(rows.quality) for rows, _, _ in kinds])
    target = np.concatenate([values for _, values, _ in kinds])
    weight = np.concatenate([share * rows.weights() for rows, _, share in kinds])
    picture = fit_linear(columns, target, weight / weight.sum())
    expected = picture(columns)
    best = float(np.quantile(expected[: len(score)], BEST_PICTURES))
    usual = Usual(picture, best, float(expected.max()))
    alarm = known.alarm(score - usual(known.quality))
    return replace(usual, picture=replace(picture, alarm=alarm))


def fit_distance(told: Detector, usual: Usual, distant: ScoreRows) -> Distance:
    """The least rise with which known objects far away are called unknown as rarely as those nearby.

    That is judged at the rates FAR_RATES, in each condition that makes them small.
    """
    beyond = told(distant.values) - usual(distant.quality)
    smallest = float(np.exp(np.quantile(distant.log_size, SMALLEST_SHARE)))
    rates = np.isin(RATES, FAR_RATES)
    allowed = np.array(usual.picture.alarm.thresholds)[rates]

    def with_rise(rise: float) -> Distance:
        return Distance(NEAR, rise, smallest)

    def enough(rise: float) -> bool:
        thresholds = distant.alarm(beyond - with_rise(rise)(distant.log_size, distant.length)).thresholds
        return bool((np.array(thresholds)[rates] <= allowed).all())

    low, high = 0.0, MOST_RISE
    if enough(low):
        return with_rise(low)
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return with_rise(high)


def fit_detector(
    ordinary: np.ndarray,
    weight: np.ndarray,
    other: np.ndarray,
    other_weight: np.ndarray,
    used: np.ndarray,
) -> Detector:
    """Tells `other` rows from `ordinary` ones by the columns `used`; its thresholds are still to be measured.

    2 x ([rows, columns], [rows]), [columns] bool
    """
    center, scale = _moments(ordinary, weight)
    rows = np.clip((np.concatenate([ordinary, other]) - center) / scale, -MOST_STANDARD, MOST_STANDARD)
    target = np.repeat([0.0, 1.0], [len(ordinary), len(other)])
    coefficients = np.zeros(rows.shape[1])
    intercept, *coefficients[used] = fit_logistic(
        rows[:, used], target, np.concatenate([weight, other_weight]) / 2
    )
    return Detector(center, scale, coefficients, float(intercept), NEVER)


def fit_linear(columns: np.ndarray, target: np.ndarray, weight: np.ndarray) -> Detector:
    """Ridge regression; thresholds are still to be measured.  [rows, columns], 2 x [rows]"""
    center, scale = _moments(columns, weight)
    rows = np.clip((columns - center) / scale, -MOST_STANDARD, MOST_STANDARD)
    design = np.concatenate([np.ones((len(rows), 1)), rows], axis=1)
    penalty = PICTURE_RIDGE * np.diag([0.0, *[1.0] * rows.shape[1]])
    intercept, *slopes = np.linalg.solve((design.T * weight) @ design + penalty, design.T @ (weight * target))
    return Detector(center, scale, np.array(slopes), float(intercept), NEVER)


def _moments(columns: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation.  [rows, columns], [rows] -> 2 x [columns]"""
    center = weight @ columns
    return center, np.maximum(np.sqrt(weight @ (columns - center) ** 2), 1e-6)


def fit_logistic(
    rows: np.ndarray, target: np.ndarray, weight: np.ndarray, iterations: int = 30
) -> np.ndarray:
    """Logistic regression by Newton's method; the intercept comes first.

    [n, columns], target 0 or 1 [n], weight summing to 1 [n] -> [1 + columns]
    """
    design = np.concatenate([np.ones((len(rows), 1)), rows], axis=1)
    penalty = RIDGE * np.diag([0.0, *[1.0] * rows.shape[1]])
    beta = np.zeros(design.shape[1])
    for _ in range(iterations):
        chance = 1.0 / (1.0 + np.exp(-np.clip(design @ beta, -30.0, 30.0)))
        gradient = design.T @ (weight * (chance - target)) + penalty @ beta
        curvature = (design.T * (weight * chance * (1.0 - chance))) @ design + penalty
        step = np.linalg.solve(curvature + 1e-9 * np.eye(len(beta)), gradient)
        beta -= step
        if np.abs(step).max() < 1e-8:
            break
    return beta


def auroc(known: np.ndarray, strange: np.ndarray) -> float:
    """Probability that an outlier scores higher than a known track (ties count half)."""
    order = np.sort(known)
    below = np.searchsorted(order, strange, side="left") + np.searchsorted(order, strange, side="right")
    return float(below.mean() / (2 * len(known)))
