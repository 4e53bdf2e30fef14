"""Fusers whose values are learned by gradient: torch differentiates the formula that fuses."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from lla_fusion_ros.fusion.base import Array, SumFuser, Value
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.settings import LENGTHS
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.types.views import add

if TYPE_CHECKING:
    import torch

Inputs = tuple[np.ndarray, ...]  # what the formula reads of views
HELD = 3e-3  # for each number, by the square of how far it moved on the scale without bounds
Free = Mapping[str, "torch.Tensor"]  # what a fit moves, without bounds


class LearnedFuser(SumFuser):
    """A sum fuser whose `sums` and `predict` are written so that tensors pass through them too."""

    @classmethod
    def bounded(cls, key: str, free: torch.Tensor) -> torch.Tensor:
        """A scalar from a number that may be any: at a bound there is a slope, so that none gets stuck."""
        low, high = cls._ends(key)
        value = low + (high - low) * free.sigmoid()
        return value.exp() if cls.scalars[key].log else value

    @classmethod
    def freed(cls, key: str, value: float) -> float:
        """The inverse of `bounded`."""
        low, high = cls._ends(key)
        share = ((np.log(value) if cls.scalars[key].log else value) - low) / (high - low)
        return float(np.log(share / (1 - share)))

    @classmethod
    def _ends(cls, key: str) -> tuple[float, float]:
        scalar = cls.scalars[key]
        ends = np.array([scalar.low, scalar.high])
        low, high = (np.log(ends) if scalar.log else ends).tolist()
        return low, high

    def learn(
        self,
        inputs: Inputs,
        tracks: TrackViews,
        start: Mapping[str, Any],
        values: Callable[[Free], dict[str, Any]],
        penalty: Callable[[Free], Any],
        iterations: int,
        opposed: tuple[Inputs, Inputs, np.ndarray] | None = None,
        opposed_weight: float = 0.0,
    ) -> dict[str, Value]:
        """The values of least mean NLL over the tracks and LENGTHS, plus the penalty. Deterministic.

        Args:
            inputs: of all views of the tracks, flat.
            start: where the free numbers begin.
            values: the fuser's values from the free numbers.
            opposed: inputs of views that contradict each other, and the classes [pairs, 2] that they say;
                half the truth goes to each side, their mean loss counts `opposed_weight` times beside that of
                the tracks.
        """
        import torch  # only where something is fitted

        free = {key: torch.tensor(value, dtype=torch.float64) for key, value in start.items()}
        for number in free.values():
            number.requires_grad_()
        tensors = [torch.from_numpy(array) for array in inputs]
        track, step, label = (torch.from_numpy(array) for array in scored_pairs(tracks))

        if opposed is not None:
            *sides, classes = opposed
            first, second = ([torch.from_numpy(array) for array in side] for side in sides)
            said = torch.from_numpy(classes)

        def at_pairs(field: torch.Tensor) -> torch.Tensor:
            return field.unflatten(0, (len(tracks), tracks.longest)).cumsum(1)[track, step]

        def loss() -> torch.Tensor:
            trial = copy.copy(self)
            trial.value = {key: _tensor(value) for key, value in {**self.value, **values(free)}.items()}
            one = trial.sums(*tensors)
            state = type(one)(*[at_pairs(getattr(one, f.name)) for f in fields(one)])
            log_pmf = trial.predict(state).clip(min=1e-300).log()
            found = smoothed_nll(log_pmf, label, chance_of_an_error(len(label))) + penalty(free)
            if opposed is None:
                return found
            pair = add(trial.sums(*first), trial.sums(*second))
            log_pmf = trial.predict(pair).clip(min=1e-300).log()
            return found - opposed_weight * log_pmf.gather(1, said).mean()

        optimiser = torch.optim.LBFGS(
            list(free.values()),
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
        found = {key: value.detach().tolist() for key, value in values(free).items()}
        for key, scalar in self.scalars.items():
            found[key] = float(np.clip(found[key], scalar.low, scalar.high))
        fixed = {key: self.value[key].tolist() for key in self.vectors if key not in found}
        return {**fixed, **{key: self.value[key] for key in self.options}, **found}


def held(free: Free, usual: Mapping[str, float]) -> Any:
    """A penalty that keeps what the tracks do not tell where it is usual, away from the bounds."""
    return HELD * sum((free[name] - value) ** 2 for name, value in usual.items())


def _tensor(value: Any) -> Any:
    import torch

    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


def scored_pairs(tracks: TrackViews) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Track, step and label of every length of LENGTHS that a track of a known class reaches.  3 x [pairs]"""
    lengths = np.array(LENGTHS)
    track, place = np.nonzero((lengths <= tracks.steps[:, None]) & (tracks.label >= 0)[:, None])
    if len(track) == 0:
        raise InputError("there is no validation track with a known class to fit a fuser on")
    return track, lengths[place] - 1, tracks.label[track].astype(np.int64)


def chance_of_an_error(predictions: int) -> float:
    """The share of the truth that fits give to the other classes: one error among n + 2 predictions (Platt).

    Where all n are right, the plain NLL falls for ever as the pmf gets sharper, and the first wrong track on
    the road would be wrong with certainty. Where some are wrong, it hardly changes the fit.
    """
    return 1.0 / (predictions + 2)


def smoothed_nll(log_pmf: Array, label: Array, wrong: float) -> Array:
    """Mean NLL where the truth gets 1 - `wrong` and the other classes share the rest.  [n, classes], [n]"""
    right = log_pmf[np.arange(len(label)), label]
    others = (log_pmf.sum(-1) - right) / (log_pmf.shape[-1] - 1)
    return -((1 - wrong) * right + wrong * others).mean()
