"""Fit the numbers of any fuser on validation tracks, choose the default by cross-validation, and score it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from lla_fusion_ros.fusion import fusers, make_fuser
from lla_fusion_ros.fusion.along import pmf_along, views_of
from lla_fusion_ros.fusion.base import Fuser, Scalar, Values
from lla_fusion_ros.fusion.evidence_pool import EvidencePool
from lla_fusion_ros.fusion.hypotheses import published_along
from lla_fusion_ros.fusion.learn import chance_of_an_error, smoothed_nll
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.fusion.safety import Safety, safety_of
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.metrics import accuracy, bootstrap_interval, ece, nll
from lla_fusion_ros.types.pmf import among_named
from lla_fusion_ros.types.settings import LENGTHS
from lla_fusion_ros.types.track_views import TrackViews

WEIGHT_PRIORS = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)  # candidates of lambda_w

ENOUGH = 0.2  # of the tracks must be so long that a length has a say: a single long one decides nothing
# Where there is something to fuse; at shorter lengths single frames decide the NLL.
DECISIVE = tuple(length for length in LENGTHS if length >= 10)
# Each fit leaves an eighth of the objects out: with fewer folds the fusers with many numbers to fit would be
# judged by what they learn from too few objects.
FOLDS = 8
TOLERANCE = 0.003  # of accuracy
CANDIDATES = (
    "evidence_pool",
    "pool",
    "reliability",
    "ella",
    "ella_mixture",
    "wls_robust",
    "hybrid",
)

Fold = tuple[TrackViews, MeasuredViews]


def fused_after(
    fuser: Fuser, tracks: TrackViews, views: MeasuredViews, lengths: Sequence[int] = LENGTHS
) -> dict[int, np.ndarray]:
    """The pmf of every track after its first L views.  {L: [tracks with at least L views, classes]}"""
    reached = [length for length in lengths if (tracks.steps >= length).any()]
    if not reached:  # short tracks only
        return {}
    pmf = pmf_along(fuser, views, tracks.longest, reached)  # [tracks, reached, classes]
    return {length: pmf[tracks.steps >= length, place] for place, length in enumerate(reached)}


def fuser_loss(fuser: Fuser, tracks: TrackViews, views: MeasuredViews) -> float:
    """Mean NLL over tracks, then over lengths (every L counts the same), smoothed as all fits are."""
    results = fused_after(fuser, tracks, views)
    wrong = chance_of_an_error(sum(map(len, results.values())))
    losses = [
        smoothed_nll(np.log(np.maximum(pmf, 1e-12)), tracks.reaching(length).label, wrong)
        for length, pmf in results.items()
    ]
    return float(np.mean(losses))


def fit_fuser(
    name: str,
    tracks: TrackViews,
    views: MeasuredViews,
    weight_prior: float | None = None,
    by_quality: bool | None = None,
) -> dict[str, float | list[float]]:
    """The values of a fuser that minimise the loss on `tracks`; its own `fit` where it has one.

    `views` are those of the tracks (`views_of`), `weight_prior` is the lambda_w of fusers that weigh by
    variances, `by_quality` whether `evidence_pool` gets a temperature by quality: None where it helps.
    """
    kind = fusers()[name]
    if issubclass(kind, EvidencePool):
        helps = quality_helps(views.posterior, tracks) if by_quality is None else by_quality
        return kind.fit(views.posterior, tracks, helps)
    fitted = kind.fit(views.posterior, tracks)
    if fitted is not None:
        return fitted
    fixed = {"prior": weight_prior} if weight_prior is not None and "prior" in kind.options else {}
    return dict(_search(kind, tracks, views, fixed) if kind.scalars else fixed)


def quality_helps(posterior: EnsemblePosterior, tracks: TrackViews, seed: int = 0) -> bool:
    """Whether `evidence_pool` gains more than a standard error by a temperature by quality.

    Each half of the objects is scored by a fit on the other, over all LENGTHS.
    """
    if tracks.objects < 2:
        return False
    halves = _folds(posterior, tracks, folds_by_object(tracks, 2, seed))
    loss = {helped: _held_out("evidence_pool", halves, None, LENGTHS, helped)[0] for helped in (False, True)}
    gain = loss[False] - loss[True]
    return bool(gain.mean() > _standard_error(gain))


def fit_weight_prior(tracks: TrackViews, views: MeasuredViews) -> float:
    """lambda_w: the prior under which variances make the best weights for `wls_robust`."""
    losses = {}
    for prior in WEIGHT_PRIORS:
        values = _search(fusers()["wls_robust"], tracks, views, {"prior": prior})
        losses[prior] = fuser_loss(make_fuser("wls_robust", views.posterior, values), tracks, views)
    return min(losses, key=losses.__getitem__)


def _search(kind: type[Fuser], tracks: TrackViews, views: MeasuredViews, fixed: Values) -> dict[str, float]:
    names = list(kind.scalars)
    scalars = [kind.scalars[name] for name in names]

    def values(point: np.ndarray) -> dict[str, float]:
        found = {name: _value(s, u) for name, s, u in zip(names, scalars, point, strict=True)}
        return {**found, **fixed}  # type: ignore[dict-item]

    def loss(point: np.ndarray) -> float:
        return fuser_loss(make_fuser(kind.name, views.posterior, values(point)), tracks, views)

    found = minimize(
        loss,
        np.array([_unit(scalar, scalar.start) for scalar in scalars]),
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * len(names),
        options={"maxiter": 40, "eps": 1e-3, "ftol": 1e-7},
    )
    return values(found.x)


def _unit(scalar: Scalar, value: float) -> float:
    """Where a value lies between its bounds, 0 to 1."""
    if scalar.log:
        return float(np.log(value / scalar.low) / np.log(scalar.high / scalar.low))
    return (value - scalar.low) / (scalar.high - scalar.low)


def _value(scalar: Scalar, unit: float) -> float:
    unit = min(max(float(unit), 0.0), 1.0)
    if scalar.log:
        value = scalar.low * (scalar.high / scalar.low) ** unit
    else:
        value = scalar.low + unit * (scalar.high - scalar.low)
    return float(np.clip(value, scalar.low, scalar.high))


@dataclass(frozen=True, slots=True)
class Choice:
    """The default and the evidence for it.

    Attributes:
        name: the chosen fuser.
        nll, accuracy: of every candidate, on tracks its values were not fitted on.
        standard_error: of the difference of its NLL to the chosen one's, over objects.
        pmf: of the chosen one after every view of every track, while its object was left out of the fit.
            [tracks, steps, classes]
    """

    name: str
    nll: dict[str, float]
    accuracy: dict[str, float]
    standard_error: dict[str, float]
    pmf: np.ndarray


def safe_candidates(
    posterior: EnsemblePosterior,
    tracks: TrackViews,
    values: Mapping[str, Values],
    candidates: Sequence[str] = CANDIDATES,
) -> tuple[list[str], dict[str, Safety]]:
    """Who may be the default, and what was measured of each candidate with its fitted values.

    A default keeps contradictions open, does not grow surer by repetition and is never surer than the objects
    support (`fusion/safety.py`). Where no candidate holds all of it, all stay: the record says what is amiss.
    """
    views = views_of(posterior, tracks)
    safety = {
        name: safety_of(make_fuser(name, posterior, values[name]), tracks, views) for name in candidates
    }
    return [name for name in candidates if not safety[name].faults()] or list(candidates), safety


def folds_by_object(tracks: TrackViews, folds: int, seed: int) -> np.ndarray:
    """The fold of each track; an object's tracks under all regimes fall into the same one.  [tracks]"""
    objects, of_track = np.unique(tracks.source, return_inverse=True)
    return np.random.default_rng(seed).permutation(len(objects))[of_track] % folds


def choose_default(
    posterior: EnsemblePosterior,
    tracks: TrackViews,
    weight_prior: float | None = None,
    candidates: Sequence[str] = CANDIDATES,
    lengths: Sequence[int] = DECISIVE,
    folds: int = FOLDS,
    seed: int = 0,
    tolerance: float = TOLERANCE,
    progress: Callable[[str], None] | None = None,
    by_quality: bool | None = None,
) -> Choice:
    """The candidate with the lowest NLL over all regimes and `lengths`, on objects it was not fitted on.

    Where hardly any track is so long, they are scored at the longest of LENGTHS that enough of them reach.
    Candidates whose accuracy is more than `tolerance`, and more than a standard error of the difference,
    below the best are out: no calibration at the price of wrong classes. `standard_error` of the result tells
    how sure the choice is. `by_quality` as of `fit_fuser`; None: decided in every fold.
    """
    parts = _folds(posterior, tracks, folds_by_object(tracks, folds, seed))
    chosen = decisive_lengths(tracks.steps, lengths)
    losses: dict[str, np.ndarray] = {}  # [objects]
    hits: dict[str, np.ndarray] = {}  # [objects]
    pmfs: dict[str, np.ndarray] = {}
    for name in candidates:
        if progress is not None:
            progress(name)
        losses[name], hits[name], pmfs[name] = _held_out(name, parts, weight_prior, chosen, by_quality)
    mean_loss, mean_hits = (
        {name: float(values.mean()) for name, values in scored.items()} for scored in (losses, hits)
    )
    best = winner(losses, hits, tolerance)
    errors = {name: _standard_error(losses[name] - losses[best]) for name in candidates}
    return Choice(best, mean_loss, mean_hits, errors, pmfs[best])


def decisive_lengths(steps: np.ndarray, lengths: Sequence[int]) -> list[int]:
    """Those of `lengths` that enough tracks reach, else the longest of LENGTHS that they do.  [tracks] int"""
    reached = [length for length in LENGTHS if (steps >= length).mean() >= ENOUGH] or [LENGTHS[0]]
    return [length for length in reached if length in lengths] or reached[-1:]


def winner(losses: Mapping[str, np.ndarray], hits: Mapping[str, np.ndarray], tolerance: float) -> str:
    """The rule of `choose_default`, on held-out losses and hits of the same objects.  name -> [objects]"""
    most_right = max(hits, key=lambda name: float(hits[name].mean()))
    # Among three hundred objects a tolerance alone may be less than one object.
    missed = {name: hits[most_right] - hits[name] for name in hits}
    sound = [name for name in losses if missed[name].mean() <= max(tolerance, _standard_error(missed[name]))]
    return min(sound, key=lambda name: float(losses[name].mean()))


def _standard_error(difference: np.ndarray) -> float:
    return float(difference.std() / np.sqrt(len(difference)))


def _folds(
    posterior: EnsemblePosterior, tracks: TrackViews, fold: np.ndarray
) -> list[tuple[Fold, Fold, np.ndarray]]:
    """Of each fold [tracks] what is outside it, what is in it, and the rows of that."""

    def part(rows: np.ndarray) -> Fold:
        chosen = tracks.take(rows)
        return chosen, views_of(posterior, chosen)

    return [
        (part(fold != number), part(fold == number), np.flatnonzero(fold == number))
        for number in np.unique(fold)
    ]


def _held_out(
    name: str,
    folds: Sequence[tuple[Fold, Fold, np.ndarray]],
    weight_prior: float | None,
    lengths: Sequence[int],
    by_quality: bool | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean loss of every object while its fold was left out, and how often it was right.  [objects] both

    Also the pmfs themselves, after every view of every track.  [tracks, steps, classes]
    """
    losses, hits, sources = [], [], []
    shape = sum(len(own) for _, _, own in folds), folds[0][1][0].longest, folds[0][1][0].classes
    pmfs = np.empty(shape, np.float32)
    for (inside, inside_views), (outside, outside_views), own in folds:
        values = fit_fuser(name, inside, inside_views, weight_prior, by_quality)
        fuser = make_fuser(name, inside_views.posterior, values)
        along = published_along(fuser, outside_views, outside.longest)
        pmfs[own] = along
        for length in (length for length in lengths if (outside.steps >= length).any()):
            long, pmf = outside.reaching(length), along[outside.steps >= length, length - 1]
            losses.append(-np.log(np.maximum(pmf[np.arange(len(long)), long.label], 1e-12)))
            hits.append(pmf.argmax(axis=1) == long.label)
            sources.append(long.source)
    _, of_row = np.unique(np.concatenate(sources), return_inverse=True)
    count = np.bincount(of_row)
    return (
        np.bincount(of_row, np.concatenate(losses)) / count,
        np.bincount(of_row, np.concatenate(hits)) / count,
        pmfs,
    )


def score_tracks(fuser: Fuser, tracks: TrackViews, seed: int = 0, reserved: int = 0) -> dict[str, Any]:
    """{"tracks": n, "single_frame": {regime: accuracy}, "fused": [records by regime and L]}.

    Of named classes, among themselves: the last, reserved, outcomes are left out.

    `single_frame` is the deep ensemble on every frame alone; intervals are 95%, by bootstrap over tracks.
    """
    records, single = [], {}
    tracks = tracks.take(tracks.label < tracks.classes - reserved)
    for regime in dict.fromkeys(tracks.regime.tolist()):
        part = tracks.take(tracks.regime == regime)
        views = views_of(fuser.posterior, part)
        right = right_frames(among_named(views.mean_pmf, reserved), part)
        single[regime] = float(right.sum() / part.steps.sum())
        along = published_along(fuser, views, part.longest)
        for length in (length for length in LENGTHS if (part.steps >= length).any()):
            long = part.reaching(length)
            pmf = among_named(along[part.steps >= length, length - 1], reserved)
            label, source = long.label, long.source
            hits = (pmf.argmax(axis=1) == label).astype(float)
            records.append(
                {
                    "regime": regime,
                    "L": length,
                    "tracks": len(label),
                    "accuracy": accuracy(pmf, label),
                    "accuracy_interval": list(bootstrap_interval(hits, track=source, seed=seed)),
                    "nll": nll(pmf, label),
                    "ece": ece(pmf, label),
                }
            )
    return {"tracks": len(np.unique(tracks.source)), "single_frame": single, "fused": records}


def right_frames(mean_pmf: np.ndarray, tracks: TrackViews) -> np.ndarray:
    """In how many of its frames each track is right, every frame alone.  [tracks * steps, m] -> [tracks]"""
    right = mean_pmf.argmax(axis=1).reshape(-1, tracks.longest) == tracks.label[:, None]
    return (right & tracks.real).sum(axis=1)
