"""Gradient fits of fusers with many coefficients: least mean NLL over validation tracks and lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from lla_fusion_ros.errors import InputError
from lla_fusion_ros.fusion.base import FitTracks

LENGTHS = (1, 2, 3, 5, 10, 20, 30)  # numbers of views at which tracks are scored, all counted alike


@dataclass(frozen=True, slots=True)
class Scored:
    """The (track, length) pairs that a fit is scored on.

    Attributes:
        track, step: where in [tracks, steps] the pmf is read (step = length - 1).   [pairs]
        label: the class that holds there.                                           [pairs]
        valid: which views exist, the others are padding.                    [tracks, steps]
        wrong: the probability that goes to the other classes (see `chance_of_an_error`).
    """

    track: torch.Tensor
    step: torch.Tensor
    label: torch.Tensor
    valid: torch.Tensor
    wrong: float


def chance_of_an_error(predictions: int) -> float:
    """The share of the truth that fits give to the other classes: one error among n + 2 predictions (Platt).

    Where all n are right, the plain NLL falls for ever as the pmf gets sharper, and the first wrong track on
    the road would be wrong with certainty. Where some are wrong, it hardly changes the fit.
    """
    return 1.0 / (predictions + 2)


def scored_pairs(tracks: FitTracks) -> Scored:
    """Every length of LENGTHS that a track reaches; tracks outside the classes (label -1) are left out."""
    steps, label, longest = tracks.steps, tracks.label, tracks.logits.shape[1]
    pairs = [
        (track, length - 1)
        for track in np.flatnonzero(label >= 0)
        for length in LENGTHS
        if length <= min(int(steps[track]), longest)
    ]
    if not pairs:
        raise InputError("there is no validation track with a known class to fit a fuser on")
    track, step = np.array(pairs).T
    valid = np.arange(longest) < np.asarray(steps)[:, None]
    return Scored(
        torch.from_numpy(track),
        torch.from_numpy(step),
        torch.from_numpy(label[track].astype(np.int64)),
        torch.from_numpy(valid),
        chance_of_an_error(len(pairs)),
    )


def standardised(signs: np.ndarray, scored: Scored) -> tuple[torch.Tensor, np.ndarray, np.ndarray]:
    """Signs of flat views at mean 0 and spread 1 over the views that exist, with that mean and spread.

    [tracks * steps, signs] -> [tracks, steps, signs], [signs], [signs]
    """
    exists = scored.valid.numpy().ravel()
    center, scale = signs[exists].mean(axis=0), np.maximum(signs[exists].std(axis=0), 1e-6)
    standard = np.clip((signs - center) / scale, -8.0, 8.0)  # one absurd view must not steer the fit
    return torch.from_numpy(standard.reshape(*scored.valid.shape, -1)), center, scale


def smoothed_nll(scores: torch.Tensor, scored: Scored) -> torch.Tensor:
    """Mean NLL of softmax(scores), the truth given 1 - `scored.wrong`.  [pairs, classes]"""
    classes = scores.shape[1]
    smoothing = scored.wrong * classes / (classes - 1)  # torch's is spread over all classes, the true one too
    return torch.nn.functional.cross_entropy(scores, scored.label, label_smoothing=smoothing)


def minimise(
    loss: Callable[[], torch.Tensor], parameters: Sequence[torch.Tensor], iterations: int = 100
) -> float:
    """L-BFGS on the parameters, in place; the loss reached. Deterministic."""
    optimiser = torch.optim.LBFGS(
        parameters,
        max_iter=iterations,
        tolerance_grad=1e-6,
        tolerance_change=1e-8,
        line_search_fn="strong_wolfe",
    )

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        value = loss()
        value.backward()
        return value

    optimiser.step(closure)
    with torch.no_grad():
        return float(loss())
