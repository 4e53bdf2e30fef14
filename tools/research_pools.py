#!/usr/bin/env python3
"""Ideas for a better pool, each cross-validated by object on a bundle's *validation* tracks.

Nothing here looks at a test track: the table says which ideas were worth building. Every idea is fitted on
three quarters of the objects, with the smoothed loss that calibration uses, and scored on the rest; the
ratio is that of its NLL to the freely fitted `pool`'s.

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
from research_fusers import arguments, write_table

from lla_fusion_ros.bundle import Bundle, load_bundle
from lla_fusion_ros.calibration import TrackViews, joined
from lla_fusion_ros.calibration.choose import folds_by_object
from lla_fusion_ros.datasets import REGIMES, load_dataset, recorded_split
from lla_fusion_ros.evaluation.bootstrap import Resamples, interval
from lla_fusion_ros.evaluation.outputs import default_cache, network_outputs
from lla_fusion_ros.fusion.along import flat_views
from lla_fusion_ros.fusion.fitting.dual_pool import MOST_LAPSE, RARITY_RIDGE, least_lapse
from lla_fusion_ros.fusion.fitting.objective import chance_of_an_error, minimise
from lla_fusion_ros.fusion.fitting.reliable_pool import SIGN_PRIOR
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.fusion.pool import FLOOR
from lla_fusion_ros.fusion.quality import QUALITY, quality

LENGTHS = (1, 2, 3, 5, 10, 20, 30)
LONG = 4  # from this place in LENGTHS on, L >= 10
RIDGE = 1e-3
FOLDS = 4
DRAWS = (7000, 7001, 7002, 7003)  # of the degraded regimes


def more_signs(views: MeasuredViews) -> dict[str, np.ndarray]:
    """Signs of quality that the package does without.  name -> [views]"""
    logits, rows = views.mean_centred, np.arange(len(views))
    ordered = np.sort(logits, axis=-1)
    top = views.centred[rows, :, views.top]  # [views, networks]
    return {
        "margin": ordered[:, -1] - ordered[:, -2],
        "top_logit": top.mean(axis=1),
        "top_spread": top.std(axis=1),
        "logit_spread": logits.std(axis=-1),
        "log_top": np.log(np.maximum(views.mean_pmf.max(axis=-1), 1e-12)),
        "network_entropy": views.mean_network_entropy,
        "agreement": (views.shifted.argmax(axis=-1) == views.top[:, None]).mean(axis=1),
    }


MORE = ("margin", "top_logit", "top_spread", "logit_spread", "log_top", "network_entropy", "agreement")
NAMES = (*QUALITY, *MORE)
OWN, TWO = tuple(QUALITY), ("entropy", "log_variance")
PLAIN = tuple(name for name in OWN if name != "log_variance")


@dataclass(frozen=True, slots=True)
class Idea:
    """One way to fuse.

    Attributes:
        form: linear: ln of the weighted mean pmf; log: weighted mean of the logits; dual: their sum, fitted
            together; mean: the mean of the two pmfs; bounded: weighted mean of ln((1 - e) p + e / M), where e
            bounds what a single bad view can do.
        signs: what the weight of a view is learned from.
        trust: the temperature of the linear pool listens to the mean signs of the whole track.
        distances: the distance of the features to each class's training features joins the class scores.
        lapse: a share of objects is taken to be misread as a whole.
        rarity: what tells the rarity of the classes that views are corrected for: the Fisher information
            about each ("information"), or its number of training tracks ("tracks"); empty: no correction.
    """

    title: str
    form: str = "linear"
    signs: tuple[str, ...] = OWN
    trust: bool = False
    distances: bool = False
    lapse: bool = False
    rarity: str = ""


IDEAS = (
    Idea("`pool`, freely fitted", signs=("entropy",)),
    Idea("linear pool, five signs (`reliable_pool`)"),
    Idea("linear pool, twelve signs", signs=NAMES),
    Idea("linear pool, entropy and Laplace variance", signs=TWO),
    Idea("linear pool, five signs, trust: a temperature by the track's mean signs", trust=True),
    Idea("the same, lapse", trust=True, lapse=True),
    Idea("log-linear pool, five signs (`reliability`)", "log"),
    Idea("mean of the two pools, five signs", "mean"),
    Idea("product of the two pools, five signs", "dual"),
    Idea("product of the two pools, five signs, lapse", "dual", lapse=True),
    Idea("product of the two pools, five signs, lapse, trust", "dual", trust=True, lapse=True),
    Idea("the same with twelve signs", "dual", NAMES, trust=True, lapse=True),
    Idea("the same with five signs, rarity (`dual_pool`)", "dual", OWN, True, False, True, "information"),
    Idea("`dual_pool`, rarity by the number of training tracks", "dual", OWN, True, False, True, "tracks"),
    Idea("`dual_pool` without the Laplace variance", "dual", PLAIN, True, False, True, "information"),
    Idea("`dual_pool` with neither Laplace variance nor rarity", "dual", PLAIN, True, False, True),
    Idea("`pool` with rarity", signs=("entropy",), rarity="information"),
    Idea("bounded views: (1 − ε) p + ε/M, five signs", "bounded"),
    Idea("product of the two pools with class distances in feature space", "dual", distances=True),
)


@dataclass(frozen=True, slots=True)
class Tracks:
    """All tracks: shifted [n, steps, C, M], centred, distances [n, steps, M], signs [n, steps, k]."""

    shifted: torch.Tensor
    centred: torch.Tensor
    distances: torch.Tensor
    signs: torch.Tensor
    information: torch.Tensor  # rarity of the classes by either measure, the same in every row.  [n, M]
    tracks: torch.Tensor
    last: torch.Tensor  # place of the pmf after each of LENGTHS.  [n, lengths]
    label: torch.Tensor
    source: torch.Tensor  # the physical object.  [n]

    def take(self, rows: np.ndarray) -> Tracks:
        chosen = torch.from_numpy(np.flatnonzero(rows))
        return Tracks(*(getattr(self, name)[chosen] for name in self.__slots__))


def tensors(bundle: Bundle, views: TrackViews, training_tracks: np.ndarray) -> Tracks:
    """`training_tracks` is their number for each class.  [M]"""
    posterior, model = bundle.posterior(), bundle.warning_model()
    assert model is not None
    flat = flat_views(posterior, views.logits, views.features)
    extra = more_signs(flat)
    signs = np.column_stack([quality(flat, prior=SIGN_PRIOR), *(extra[name] for name in MORE)])
    signs = np.clip((signs - signs.mean(0)) / np.maximum(signs.std(0), 1e-6), -8, 8)
    white = np.einsum("tcd,cde->cte", flat.bounded_features[..., :-1], model.space.whitening)
    centres = model.space.centres  # [C, M, d]
    scores = np.matmul(white, centres.swapaxes(1, 2)) - 0.5 * (centres**2).sum(-1)[:, None]
    distances = scores.mean(0) - scores.mean((0, 2))[:, None]
    shape = views.logits.shape[:2]

    def tensor(array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array, np.float32)).reshape(*shape, *array.shape[1:])

    def every_row(values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(values.astype(np.float32)).expand(shape[0], -1)

    few = -np.log(np.maximum(training_tracks, 0.5))
    last = np.minimum(np.array(LENGTHS), views.steps[:, None]) - 1
    return Tracks(
        tensor(flat.shifted),
        tensor(flat.mean_centred),
        tensor(distances / distances.std()),
        tensor(signs),
        every_row(posterior.rarity),
        every_row((few - few.mean()) / max(few.std(), 1e-6)),
        torch.from_numpy(last),
        torch.from_numpy(views.label.astype(np.int64)),
        torch.from_numpy(views.source.astype(np.int64)),
    )


def fitted(idea: Idea, tracks: Tracks) -> dict[str, torch.Tensor]:
    chosen = [NAMES.index(name) for name in idea.signs]
    entropy = torch.tensor([-1.0 if name == "entropy" else 0.0 for name in idea.signs])
    half = 0.7 if idea.form == "dual" else 0.0  # two pools that add up begin at half their strength
    parameters = {
        "linear": entropy.clone(),
        "log": torch.zeros(len(chosen)),
        "trust": torch.zeros(len(chosen)),
        "scalars": torch.tensor([0.1, half, 0.0, -4.0, 0.1]),  # alpha, ln T, ln T_view, bound, kappa
        "powers": torch.tensor([0.3, half]),  # a, b
        "tail": torch.tensor([-5.0, -1.0]),  # logits of lapse and spread
        "rarity": torch.zeros(2),  # of the linear and of the log-linear pool
    }
    for parameter in parameters.values():
        parameter.requires_grad_()
    wrong = chance_of_an_error(tracks.last.numel())
    # of the linear pool the ridge spares the entropy: it shrinks towards `pool`
    spared = {"linear": 1.0 + entropy, "log": torch.ones(len(chosen)), "trust": torch.ones(len(chosen))}

    def loss() -> torch.Tensor:
        log_pmf = log_pmfs(idea, parameters, tracks)
        right = of_truth(log_pmf, tracks)
        others = (log_pmf.sum(-1) - right) / (log_pmf.shape[-1] - 1)
        penalty = sum((kept * parameters[name] ** 2).sum() for name, kept in spared.items())
        penalty = RIDGE * penalty + RARITY_RIDGE * (parameters["rarity"] ** 2).sum()
        return -((1 - wrong) * right + wrong * others).mean() + penalty

    minimise(loss, list(parameters.values()), iterations=40)
    return parameters


def of_truth(log_pmf: torch.Tensor, tracks: Tracks) -> torch.Tensor:
    """ln p of the true class.  [n, lengths, M] -> [n, lengths]"""
    return log_pmf.gather(-1, tracks.label[:, None, None].expand(-1, log_pmf.shape[1], 1))[..., 0]


def log_pmfs(idea: Idea, parameters: dict[str, torch.Tensor], tracks: Tracks) -> torch.Tensor:
    """ln pmf of every track at every length.  [n, lengths, M]"""
    signs = tracks.signs[..., [NAMES.index(name) for name in idea.signs]]
    parts = []
    if idea.form != "log":
        parts.append(_linear(idea, parameters, tracks, signs))
    if idea.form in ("log", "dual", "mean"):
        parts.append(_log_linear(idea, parameters, tracks, signs))
    if idea.form == "mean":
        both = torch.stack([part.log_softmax(-1) for part in parts])
        return torch.logsumexp(both, 0) - float(np.log(len(parts)))
    scores = torch.stack(parts).sum(0)
    log_pmf = scores.log_softmax(-1)
    if idea.lapse:
        lapse, spread = torch.sigmoid(parameters["tail"])
        least = least_lapse(len(torch.unique(tracks.source)))
        lapse = least + (MOST_LAPSE - least) * lapse
        wide = (spread * scores).log_softmax(-1)
        log_pmf = torch.logaddexp(torch.log1p(-lapse) + log_pmf, torch.log(lapse) + wide)
    return log_pmf


def _weights(signs: torch.Tensor, theta: torch.Tensor) -> torch.Tensor:
    return torch.exp((signs @ theta).clamp(-20, 20))[..., None]  # [n, steps, 1]


def _at_lengths(values: torch.Tensor, tracks: Tracks) -> torch.Tensor:
    return values[torch.arange(len(tracks.label))[:, None], tracks.last]


def _linear(
    idea: Idea, parameters: dict[str, torch.Tensor], tracks: Tracks, signs: torch.Tensor
) -> torch.Tensor:
    alpha, log_t, log_view, bound, _ = parameters["scalars"]
    weight = _weights(signs, parameters["linear"])
    total = weight.cumsum(1)
    scaled = tracks.shifted / torch.exp(log_view.clamp(-2.3, 2.9))
    if idea.rarity:
        scaled = scaled + parameters["rarity"][0] * getattr(tracks, idea.rarity)[:, None, None]
    pmf = torch.softmax(scaled, -1).mean(2)
    if idea.form == "bounded":
        bad = torch.sigmoid(bound)
        scores = (weight * torch.log((1 - bad) * pmf + bad / pmf.shape[-1])).cumsum(1) / total
    else:
        scores = torch.log(((weight * pmf).cumsum(1) / total).clamp_min(FLOOR))
    log_power = alpha.clamp(0, 1) * torch.log(torch.arange(1, pmf.shape[1] + 1.0)) - log_t
    if idea.trust:
        log_power = log_power + ((weight * signs).cumsum(1) / total) @ parameters["trust"]
    return _at_lengths(scores * torch.exp(log_power.clamp(-5, 5))[..., None], tracks)


def _log_linear(
    idea: Idea, parameters: dict[str, torch.Tensor], tracks: Tracks, signs: torch.Tensor
) -> torch.Tensor:
    a, b = parameters["powers"]
    weight = _weights(signs, parameters["log"])
    total = weight.cumsum(1)
    logits = tracks.centred
    if idea.rarity:
        logits = logits + parameters["rarity"][1] * getattr(tracks, idea.rarity)[:, None]
    if idea.distances:
        logits = logits + parameters["scalars"][4] * tracks.distances
    scores = (weight * logits).cumsum(1) / total
    return _at_lengths(scores * total ** a.clamp(0, 1) * torch.exp(-b.clamp(-4, 4)), tracks)


def held_out(idea: Idea, tracks: Tracks, fold: np.ndarray) -> np.ndarray:
    """NLL of every track while its object was left out of the fit.  [n, lengths]"""
    result = np.zeros((len(fold), len(LENGTHS)))
    for part in range(FOLDS):
        parameters = fitted(idea, tracks.take(fold != part))
        with torch.no_grad():
            left_out = tracks.take(fold == part)
            result[fold == part] = -of_truth(log_pmfs(idea, parameters, left_out), left_out).numpy()
    return result


def by_object(nll: np.ndarray, views: TrackViews, start: int) -> np.ndarray:
    """Mean over draws, over lengths from `start` on, and over the regimes, each counted alike.  [objects]"""
    objects, of_track = np.unique(views.source, return_inverse=True)
    means = []
    for regime in REGIMES:
        own = views.regime == regime
        count = np.bincount(of_track[own], minlength=len(objects))
        means.append(np.bincount(of_track[own], nll[own, start:].mean(1), len(objects)) / count)
    return np.mean(means, axis=0)


def rows(tracks: Tracks, views: TrackViews) -> Iterator[list[str]]:
    fold = folds_by_object(views, FOLDS, seed=0)
    draws = Resamples.draw(len(np.unique(views.source)))
    found: list[np.ndarray] = []
    for idea in IDEAS:
        found.append(held_out(idea, tracks, fold))
        yield [idea.title, *_ratios(found[-1], found[0], views, draws)]


def _ratios(own: np.ndarray, pool: np.ndarray, views: TrackViews, draws: Resamples) -> Iterator[str]:
    for start in (LONG, 0):
        mine, theirs = (by_object(nll, views, start) for nll in (own, pool))
        low, high = interval(draws.means(mine) / draws.means(theirs))
        yield f"{mine.mean() / theirs.mean():.3f} [{low:.3f}, {high:.3f}]"


def main() -> int:
    args = arguments(__doc__)
    bundle = load_bundle(args.bundle)
    data = load_dataset(args.dataset, args.root)
    splits = recorded_split(data, bundle.meta.dataset)
    validation = splits.validation
    training_tracks = np.bincount([track.label for track in splits.train.tracks], minlength=bundle.classes)
    seeds = {regime: DRAWS[: 1 if regime == "clean" else None] for regime in REGIMES}
    views = joined(
        [
            network_outputs(bundle, validation, regime, seed, max(LENGTHS), default_cache())
            for regime in REGIMES
            for seed in seeds[regime]
        ]
    )
    note = (
        f"{Path(bundle.source).stem}: {bundle.networks} networks, {len(validation.tracks)} validation "
        f"tracks, {len(DRAWS)} draws where degraded, {FOLDS} folds by object; 95% intervals over objects."
    )
    longest = "L ≥ 10" if np.median(views.steps) >= LENGTHS[LONG] else "all views"
    header = ["idea", f"NLL / pool, {longest}", "NLL / pool, all L"]
    done: list[list[str]] = []
    for row in rows(tensors(bundle, views, training_tracks), views):
        done.append(row)
        print(*row, sep="   ", file=sys.stderr, flush=True)
        write_table(args.json, f"pools_{data.name}", {"header": header, "rows": done, "note": note})
    return 0


if __name__ == "__main__":
    sys.exit(main())
