"""Calibration of networks that have seen every track, by networks that have not.

What networks say of the tracks they were trained on is too good to calibrate on. Networks trained in the same
way without a part of the tracks stand in for them on that part: everything is fitted on objects that the
networks in question had never seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lla_fusion_ros.lab.calibration.network_calibration import Networks
from lla_fusion_ros.lab.datasets import Splits, TrackSet
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_views import TrackViews, joined


@dataclass(frozen=True, slots=True)
class Part:
    """Networks, the tracks they were trained on, and others that they are calibrated on."""

    networks: Networks
    train: TrackSet
    unseen: TrackSet


def all_tracks(splits: Splits) -> Splits:
    """Every track of a known class for training; those kept aside before are what calibration rests on."""
    aside = splits.validation.tracks + splits.test.tracks
    train = replace(splits.train, tracks=splits.train.tracks + aside)
    nothing = replace(splits.test, tracks=())
    return Splits(train, replace(splits.validation, tracks=aside), nothing, splits.outside)


def left_out(splits: Splits) -> list[tuple[TrackSet, TrackSet]]:
    """What to train on, and what that leaves out: the validation and the test tracks in turn."""
    parts = (splits.validation, splits.test)
    if not all(part.tracks for part in parts):
        raise InputError("training on all tracks needs a split into training, validation and test tracks")
    rests = [replace(splits.train, tracks=splits.train.tracks + other.tracks) for other in reversed(parts)]
    return list(zip(rests, parts, strict=True))


def apart(views: Sequence[TrackViews]) -> list[TrackViews]:
    """The views of several parts, their objects numbered apart."""
    first = np.cumsum([0, *(int(part.source.max()) + 1 for part in views)])
    return [replace(part, source=part.source + start) for part, start in zip(views, first[:-1], strict=True)]


def side_by_side(
    posteriors: Sequence[EnsemblePosterior], views: Sequence[TrackViews]
) -> tuple[EnsemblePosterior, TrackViews]:
    """The views of several ensembles as one, each measured under the posterior of its own ensemble.

    The features of each ensemble get places of their own, zero in all others, and the posterior has one block
    for each: its variances and covariances are those of the ensemble that a view comes from.
    """
    if len(posteriors) == 1:
        return posteriors[0], views[0]
    if any(posterior.cross is not None for posterior in posteriors):
        raise InputError("--cross cannot be had with --all-tracks: its blocks are of one ensemble")
    width = posteriors[0].features
    shape = (*posteriors[0].factors.shape[:2], len(posteriors) * width, len(posteriors) * width)
    factors = np.zeros(shape)
    placed = []
    for number, (posterior, part) in enumerate(zip(posteriors, views, strict=True)):
        own = slice(number * width, (number + 1) * width)
        factors[:, :, own, own] = posterior.factors
        features = np.zeros((*part.features.shape[:3], shape[2]), np.float32)
        features[..., own] = part.features
        placed.append(replace(part, features=features))
    return EnsemblePosterior(factors, posteriors[0].prior_precision), joined(placed)
