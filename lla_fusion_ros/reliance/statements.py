"""Sets of classes that hold the true one, and upper bounds of the error, as calibrated on whole objects.

*Set.* For at least a share `coverage` of objects like the calibration's, the set holds the true class in
every frame of the track that has so many views (one promise for each group of GROUPS). It is conformal
prediction with one score per object: the largest -ln p(true class) over its frames.
*Bound.* The probability that the first class is wrong is at most this, at confidence CONFIDENCE: the
Clopper-Pearson limit of the error share of calibration objects that the fuser was as sure of.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from scipy.stats import beta

from lla_fusion_ros.types.errors import BundleError, InputError

GROUPS = (1, 3, 10)  # first number of views of each group
COVERAGES = (0.8, 0.9, 0.95, 0.98, 0.99, 0.995)
USUAL_COVERAGE = 0.95
CONFIDENCE = 0.95
BINS = 4  # of 1 - p: the surest half of the frames, half of the rest, and so on
LEAST = 1e-12


@dataclass(frozen=True, slots=True)
class Reliance:
    """The calibrated numbers, stored in a bundle.

    Attributes:
        objects: that reached each group of GROUPS.                                      [groups]
        thresholds: largest -ln p of a class in the set, by group and COVERAGES; inf where the objects are
            too few for the promise.                                                     [groups, coverages]
        edges: of the bins of 1 - p, rising.                                             [bins - 1]
        bounds: of the error in each bin, not falling.                                   [bins]
    """

    objects: tuple[int, ...]
    thresholds: np.ndarray
    edges: np.ndarray
    bounds: np.ndarray

    def sets(self, pmf: np.ndarray, views: np.ndarray, coverage: float) -> np.ndarray:
        """Which classes are in the set of each object; all of them where nothing can be promised.

        A coverage between two of COVERAGES takes the higher one.  pmf [n, classes], views [n] -> [n, classes]
        """
        if coverage > COVERAGES[-1]:
            raise InputError(f"coverage {coverage:g} cannot be promised, {COVERAGES[-1]:g} is the most")
        column = int(np.searchsorted(COVERAGES, coverage - 1e-9))
        limit = self.thresholds[groups_of(views), column]  # [n]
        inside = -np.log(np.maximum(pmf, LEAST)) <= limit[:, None]
        inside[np.isinf(limit)] = True
        inside[np.arange(len(pmf)), pmf.argmax(axis=1)] = True
        return inside

    def upper_bounds(self, pmf: np.ndarray) -> np.ndarray:
        """Of the probability that the first class is wrong.  [n, classes] -> [n]"""
        return self.bounds[np.searchsorted(self.edges, 1.0 - pmf.max(axis=1))]

    def promised(self, group: int) -> float:
        """The largest of COVERAGES that the objects of a group support; 0: none."""
        return max(
            (c for c, limit in zip(COVERAGES, self.thresholds[group], strict=True) if np.isfinite(limit)),
            default=0.0,
        )

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON; what cannot be promised is null."""
        limits = [[v if np.isfinite(v) else None for v in row] for row in self.thresholds.tolist()]
        return {
            "groups": list(GROUPS),
            "coverages": list(COVERAGES),
            "confidence": CONFIDENCE,
            "objects": list(self.objects),
            "thresholds": limits,
            "edges": self.edges.tolist(),
            "bounds": self.bounds.tolist(),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Reliance:
        """What `as_dict` gave; a record of another kind is refused."""
        try:
            if (tuple(record["groups"]), tuple(record["coverages"])) != (GROUPS, COVERAGES):
                raise ValueError("other groups or coverages; calibrate the bundle again")
            limits = np.array(
                [[np.inf if v is None else float(v) for v in row] for row in record["thresholds"]]
            )
            found = cls(
                tuple(int(n) for n in record["objects"]),
                limits,
                np.asarray(record["edges"], float),
                np.asarray(record["bounds"], float),
            )
            shapes = found.thresholds.shape, found.bounds.shape, len(found.objects)
            if shapes != ((len(GROUPS), len(COVERAGES)), (len(found.edges) + 1,), len(GROUPS)):
                raise ValueError("its arrays do not fit each other")
            if (np.diff(found.edges) < 0).any() or not ((found.bounds >= 0) & (found.bounds <= 1)).all():
                raise ValueError("its bounds are no probabilities over rising edges")
        except (KeyError, TypeError, ValueError) as error:
            raise BundleError(f"the calibration of sets and bounds is damaged: {error}") from None
        return found


def groups_of(views: np.ndarray) -> np.ndarray:
    """The group of each number of views.  [...] int -> [...] int"""
    return np.searchsorted(GROUPS, np.maximum(views, 1), side="right") - 1


def calibrate(
    pmf: np.ndarray, real: np.ndarray, label: np.ndarray, regime: np.ndarray, source: np.ndarray
) -> Reliance:
    """From the fused pmfs of validation tracks after every view.

    A track degraded several times is one object: its versions steady a number but are no more evidence. Set
    thresholds hold in each regime (the largest of them), as a whole drive may be in the rain.
    pmf [tracks, steps, classes], real [tracks, steps] bool, label, regime, source [tracks]
    """
    known = label >= 0
    pmf, real, label, regime, source = (array[known] for array in (pmf, real, label, regime, source))
    true = np.take_along_axis(pmf, label[:, None, None], axis=2)[..., 0]
    score = -np.log(np.maximum(true, LEAST))  # [tracks, steps]
    group = groups_of(np.arange(1, pmf.shape[1] + 1))
    thresholds = np.full((len(GROUPS), len(COVERAGES)), np.inf)
    objects = []
    for g in range(len(GROUPS)):
        there = real & (group == g)
        reached = there.any(axis=1)
        objects.append(len(np.unique(source[reached])))
        worst = np.where(there, score, -np.inf).max(axis=1)
        for column, coverage in enumerate(COVERAGES):
            limits = [
                conformal_threshold(worst[reached & (regime == name)], objects[-1], coverage)
                for name in np.unique(regime[reached])
            ]
            thresholds[g, column] = max(limits, default=np.inf)
    edges, bounds = error_bounds(
        1.0 - pmf[real].max(axis=1),
        pmf.argmax(axis=2)[real] != np.repeat(label, real.sum(axis=1)),
        np.repeat(source, real.sum(axis=1)),
    )
    return Reliance(tuple(objects), thresholds, edges, bounds)


def conformal_threshold(scores: np.ndarray, objects: int, coverage: float) -> float:
    """The ceil((n + 1) coverage)-th of n scores; inf where n is too small.  scores [versions of n objects]"""
    rank = ceil((objects + 1) * coverage - 1e-9)
    if rank > objects or len(scores) == 0:
        return float("inf")
    place = ceil(rank / objects * len(scores) - 1e-9) - 1
    return float(np.sort(scores)[place])


def error_bounds(doubt: np.ndarray, wrong: np.ndarray, source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges of the bins of 1 - p, and the bound of the error in each.  3 x [frames] -> [bins - 1], [bins]

    Each bin holds half of what is left: most frames are sure ones, and the more objects a bin has, the
    tighter its bound.
    """
    _, of_frame = np.unique(source, return_inverse=True)
    # every object weighs the same, however long its track is
    weight = (1.0 / np.bincount(of_frame))[of_frame]
    order = np.argsort(doubt)
    reached = np.cumsum(weight[order]) / weight.sum()
    shares = 1.0 - 0.5 ** np.arange(1, BINS)
    edges = np.unique(doubt[order][np.searchsorted(reached, shares)])
    place = np.searchsorted(edges, doubt)
    bounds = [
        clopper_pearson(*error_share(wrong[place == k], of_frame[place == k])) for k in range(len(edges) + 1)
    ]
    return edges, np.maximum.accumulate(bounds)


def error_share(wrong: np.ndarray, source: np.ndarray) -> tuple[float, float]:
    """Errors and the number of objects that the frames are worth.  2 x [frames]

    Frames of one object are no independent evidence: with n_o frames of each object, they are worth
    (sum n_o)^2 / sum n_o^2 objects, and the same share of these are errors as of the frames.
    """
    if len(wrong) == 0:  # a bin that equal values of 1 - p left empty
        return 0.0, 0.0
    _, of_frame = np.unique(source, return_inverse=True)
    frames = np.bincount(of_frame).astype(float)
    objects = frames.sum() ** 2 / (frames**2).sum()
    return float(wrong.mean() * objects), float(objects)


def clopper_pearson(errors: float, objects: float, confidence: float = CONFIDENCE) -> float:
    """Upper limit of the error share after so many errors among so many objects."""
    if objects == 0 or errors >= objects:
        return 1.0
    return float(beta.ppf(confidence, errors + 1.0, objects - errors))
