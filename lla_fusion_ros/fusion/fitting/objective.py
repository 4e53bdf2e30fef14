"""Gradient fits of fusers with many coefficients: least mean NLL over validation tracks and lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from lla_fusion_ros.errors import InputError

LENGTHS = (1, 2, 3, 5, 10, 20, 30)  # numbers of views at which tracks are scored, all counted alike


@dataclass(frozen=True, slots=True)
class Scored:
    """The (track, length) pairs that a fit is scored on.

    Attributes:
        track, step: where in [tracks, steps] the pmf is read (step = length - 1).   [pairs]
        label: the class that holds there.                                           [pairs]
        valid: which views exist, the others are padding.                    [tracks, steps]
    """

    track: torch.Tensor
    step: torch.Tensor
    label: torch.Tensor
    valid: torch.Tensor


def scored_pairs(steps: np.ndarray, label: np.ndarray, longest: int) -> Scored:
    """Every length of LENGTHS that a track reaches; tracks outside the classes (label -1) are left out."""
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
    )


def standardised(signs: np.ndarray, scored: Scored) -> tuple[torch.Tensor, np.ndarray, np.ndarray]:
    """Signs of flat views at mean 0 and spread 1 over the views that exist, with that mean and spread.

    [tracks * steps, signs] -> [tracks, steps, signs], [signs], [signs]
    """
    exists = scored.valid.numpy().ravel()
    center, scale = signs[exists].mean(axis=0), np.maximum(signs[exists].std(axis=0), 1e-6)
    standard = np.clip((signs - center) / scale, -8.0, 8.0)  # one absurd view must not steer the fit
    return torch.from_numpy(standard.reshape(*scored.valid.shape, -1)), center, scale


def nll(scores: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    """Mean negative log-likelihood of softmax(scores).  [pairs, classes], [pairs]"""
    return torch.nn.functional.cross_entropy(scores, label)


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
