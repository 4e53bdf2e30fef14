#!/usr/bin/env python3
"""Ideas for a better pool, each cross-validated by object on a bundle's *validation* tracks.

Nothing here looks at a test track: the table says which ideas were worth building. Every idea is fitted on
three quarters of the objects and scored on the rest; the ratio is that of its NLL to the freely fitted
`pool`'s.

Example:
    python tools/research_pools.py gtsrb35.safetensors --root data/GTSRB --json docs/results/research.json
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from research_fusers import VALIDATION_SEEDS, arguments, write_table

from lla_fusion_ros.bundle import Bundle, load_bundle
from lla_fusion_ros.calibration import TrackViews, joined
from lla_fusion_ros.calibration.choose import folds_by_object
from lla_fusion_ros.datasets import REGIMES, load_dataset, split_tracks
from lla_fusion_ros.evaluation.bootstrap import Resamples, interval
from lla_fusion_ros.evaluation.outputs import default_cache, network_outputs
from lla_fusion_ros.fusion.along import flat_views
from lla_fusion_ros.fusion.fitting.objective import minimise
from lla_fusion_ros.fusion.fitting.reliable_pool import SIGN_PRIOR
from lla_fusion_ros.fusion.pool import FLOOR
from lla_fusion_ros.fusion.quality import QUALITY, quality

LENGTHS = (1, 3, 5, 10, 20, 30)
LONG = 3  # from this place in LENGTHS on, L >= 10
RIDGE = 1e-3
FOLDS = 4
ALL, TWO = tuple(QUALITY), ("entropy", "log_variance")


@dataclass(frozen=True, slots=True)
class Idea:
    """One way to fuse.

    Attributes:
        form: linear: ln of the weighted mean pmf; log: weighted mean of the logits; bounded: weighted mean of
            ln((1 - e) p + e / M), where e bounds what a single bad view can do.
        signs: what the weight of a view is learned from.
        adaptive: the temperature listens to the signs of the whole track.
        distances: the distance of the features to each class's training features joins the class scores.
    """

    title: str
    form: str = "linear"
    signs: tuple[str, ...] = ALL
    adaptive: bool = False
    distances: bool = False


IDEAS = (
    Idea("`pool`, freely fitted", signs=("entropy",)),
    Idea("linear pool, all 12 signs (`reliable_pool`)"),
    Idea("linear pool, entropy and Laplace variance", signs=TWO),
    Idea("the same, temperature by the track's mean signs", signs=TWO, adaptive=True),
    Idea("linear pool, 12 signs, temperature by the track's mean signs", adaptive=True),
    Idea("log-linear pool, all 12 signs (`reliability`)", "log"),
    Idea("log-linear pool, entropy and Laplace variance", "log", TWO),
    Idea("bounded views: (1 − ε) p + ε/M, entropy and Laplace variance", "bounded", TWO),
    Idea("log-linear pool with class distances in feature space", "log", TWO, distances=True),
    Idea("linear pool with class distances in feature space", "linear", TWO, distances=True),
)
PAIRS = ((2, 6, "mean of the two pools with two signs (`committee`)"),)


@dataclass(frozen=True, slots=True)
class Tracks:
    """All tracks: shifted [n, steps, C, M], centred, distances [n, steps, M], signs [n, steps, k]."""

    shifted: torch.Tensor
    centred: torch.Tensor
    distances: torch.Tensor
    signs: torch.Tensor
    last: torch.Tensor  # place of the pmf after each of LENGTHS.  [n, lengths]
    label: torch.Tensor

    def take(self, rows: np.ndarray) -> Tracks:
        chosen = torch.from_numpy(np.flatnonzero(rows))
        return Tracks(*(getattr(self, name)[chosen] for name in self.__slots__))


def tensors(bundle: Bundle, views: TrackViews) -> Tracks:
    posterior, model = bundle.posterior(), bundle.warning_model()
    assert model is not None
    flat = flat_views(posterior, views.logits, views.features)
    signs = quality(flat, prior=SIGN_PRIOR)
    signs = np.clip((signs - signs.mean(0)) / signs.std(0), -8, 8)
    white = np.einsum("tcd,cde->cte", flat.bounded_features[..., :-1], model.space.whitening)
    centres = model.space.centres  # [C, M, d]
    scores = np.matmul(white, centres.swapaxes(1, 2)) - 0.5 * (centres**2).sum(-1)[:, None]
    distances = scores.mean(0) - scores.mean((0, 2))[:, None]
    shape = views.logits.shape[:2]

    def tensor(array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, np.float32)).reshape(*shape, *array.shape[1:])

    last = np.minimum(np.array(LENGTHS), views.steps[:, None]) - 1
    return Tracks(
        tensor(flat.shifted),
        tensor(flat.mean_centred),
        tensor(distances / distances.std()),
        tensor(signs),
        torch.from_numpy(last),
        torch.from_numpy(views.label.astype(np.int64)),
    )


def fitted(idea: Idea, tracks: Tracks) -> dict[str, torch.Tensor]:
    chosen = [list(QUALITY).index(name) for name in idea.signs]
    start = torch.zeros(len(QUALITY))
    start[0] = -1.0 if idea.form == "linear" else 0.0
    parameters = {
        "theta": start[chosen].clone().requires_grad_(),
        "scalars": torch.tensor(
            [0.2, 0.0, 0.0, -4.0, 0.1]
        ).requires_grad_(),  # alpha, ln T, ln T_view, e, kappa
        "adaptive": torch.zeros(len(chosen)).requires_grad_(),
    }

    def loss() -> torch.Tensor:
        penalty = RIDGE * ((parameters["theta"][1:] ** 2).sum() + (parameters["adaptive"] ** 2).sum())
        return losses(idea, parameters, tracks).mean() + penalty

    minimise(loss, list(parameters.values()), iterations=40)
    return parameters


def losses(idea: Idea, parameters: dict[str, torch.Tensor], tracks: Tracks) -> torch.Tensor:
    """NLL of every track at every length.  [n, lengths]"""
    chosen = [list(QUALITY).index(name) for name in idea.signs]
    alpha, log_t, log_view, bound, kappa = parameters["scalars"]
    signs = tracks.signs[..., chosen]
    weight = torch.exp((signs @ parameters["theta"]).clamp(-20, 20))
    total = weight.cumsum(1)

    def mean(values: torch.Tensor) -> torch.Tensor:
        return (weight[..., None] * values).cumsum(1) / total[..., None]

    classes = tracks.shifted.shape[-1]
    if idea.form == "log":
        scores, amount = mean(tracks.centred), total
    else:
        pmf = torch.softmax(tracks.shifted / torch.exp(log_view.clamp(-2.3, 2.9)), -1).mean(2)
        amount = torch.arange(1, pmf.shape[1] + 1.0).expand(pmf.shape[:2])
        if idea.form == "bounded":
            bad = torch.sigmoid(bound)
            scores = mean(torch.log((1 - bad) * pmf + bad / classes))
        else:
            scores = torch.log(mean(pmf).clamp_min(FLOOR))
    if idea.distances:
        scores = scores + kappa * mean(tracks.distances)
    log_power = alpha.clamp(0, 1) * torch.log(amount) - log_t
    if idea.adaptive:
        log_power = log_power + mean(signs) @ parameters["adaptive"]
    log_pmf = torch.log_softmax(scores * torch.exp(log_power.clamp(-5, 5))[..., None], -1)
    rows = torch.arange(len(tracks.label))[:, None]
    return -log_pmf[rows, tracks.last, tracks.label[:, None]]


def held_out(idea: Idea, tracks: Tracks, fold: np.ndarray) -> np.ndarray:
    """NLL of every track while its object was left out of the fit.  [n, lengths]"""
    result = np.zeros((len(fold), len(LENGTHS)))
    for part in range(FOLDS):
        parameters = fitted(idea, tracks.take(fold != part))
        with torch.no_grad():
            result[fold == part] = losses(idea, parameters, tracks.take(fold == part)).numpy()
    return result


def by_object(nll: np.ndarray, views: TrackViews, start: int) -> np.ndarray:
    """Mean over regimes and draws, then over lengths from `start` on.  [objects]"""
    objects, of_track = np.unique(views.source, return_inverse=True)
    return np.bincount(of_track, nll[:, start:].mean(1), len(objects)) / np.bincount(of_track)


def rows(tracks: Tracks, views: TrackViews) -> Iterator[list[str]]:
    fold = folds_by_object(views, FOLDS, seed=0)
    draws = Resamples.draw(len(np.unique(views.source)))
    found: list[np.ndarray] = []
    for idea in IDEAS:
        found.append(held_out(idea, tracks, fold))
        yield [idea.title, *_ratios(found[-1], found[0], views, draws)]
    for first, second, title in PAIRS:
        nll = -np.log((np.exp(-found[first]) + np.exp(-found[second])) / 2)
        yield [title, *_ratios(nll, found[0], views, draws)]


def _ratios(own: np.ndarray, pool: np.ndarray, views: TrackViews, draws: Resamples) -> Iterator[str]:
    for start in (LONG, 0):
        mine, theirs = (by_object(nll, views, start) for nll in (own, pool))
        low, high = interval(draws.means(mine) / draws.means(theirs))
        yield f"{mine.mean() / theirs.mean():.3f} [{low:.3f}, {high:.3f}]"


def main() -> int:
    args = arguments(__doc__)
    bundle = load_bundle(args.bundle)
    made = bundle.meta.dataset
    data = load_dataset(args.dataset, args.root)
    validation = split_tracks(data, made["holdout"], tuple(made["fractions"]), made["split_seed"]).validation
    seeds = {regime: VALIDATION_SEEDS[: 1 if regime == "clean" else None] for regime in REGIMES}
    views = joined(
        [
            network_outputs(bundle, validation, regime, seed, max(LENGTHS), default_cache())
            for regime in REGIMES
            for seed in seeds[regime]
        ]
    )
    note = (
        f"{Path(bundle.source).stem}: {bundle.networks} networks, {len(validation.tracks)} validation "
        f"tracks, {FOLDS} folds by object; 95% intervals over objects."
    )
    header = ["idea", "NLL / pool, L ≥ 10", "NLL / pool, all L"]
    done: list[list[str]] = []
    for row in rows(tensors(bundle, views), views):
        done.append(row)
        print(*row, sep="   ", file=sys.stderr, flush=True)
        write_table(args.json, "pools", {"header": header, "rows": done, "note": note})
    return 0


if __name__ == "__main__":
    sys.exit(main())
