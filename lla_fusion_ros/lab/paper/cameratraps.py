"""The paper's third experiment on real camera traps: sequences of animals, sites that were never seen.

Two ways to the same tracks: one network from scratch, as the paper has it, and heads on the features of a
network that somebody else trained. Fusers are fitted on validation tracks, test tracks are scored once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from lla_fusion_ros.fusion import make_fuser
from lla_fusion_ros.fusion.along import flat_views, pmf_along
from lla_fusion_ros.lab.calibration.fusers import fit_fuser
from lla_fusion_ros.lab.datasets import load_dataset, split_tracks
from lla_fusion_ros.lab.datasets.crops import border_of, cut
from lla_fusion_ros.lab.importing.head import Regression, bootstrap_weights, leading_directions
from lla_fusion_ros.lab.importing.preprocess import Preprocessing
from lla_fusion_ros.lab.importing.sources import from_onnx
from lla_fusion_ros.lab.paper.experiments import Experiment, load_or_train
from lla_fusion_ros.lab.paper.network_outputs import Progress
from lla_fusion_ros.networks import Ensemble, Normalisation, register_architecture
from lla_fusion_ros.networks.onnx_engine import Trunks
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.posterior.fit import DiagonalSum
from lla_fusion_ros.reliance.statements import calibrate
from lla_fusion_ros.types.metrics import accuracy, auroc, brier, ece, nll
from lla_fusion_ros.types.pmf import entropy, softmax
from lla_fusion_ros.types.track_set import TrackSet
from lla_fusion_ros.types.track_views import TrackViews

FRACTIONS = (0.6, 0.2, 0.2)
# Directions of the trunk's features that heads read, those that their posterior sees, and bootstrap heads.
LEADING, DIRECTIONS, HEADS = 256, 62, 3
TRUNK_SIZE, SCRATCH_SIZE = 160, 64
TRUNK_INPUT = Preprocessing(mean=(127 / 255,), std=(128 / 255,), size=TRUNK_SIZE)  # EfficientNet-Lite's own
# The last one is ours; `wls` is eq. 25 as printed.
FUSERS = ("last", "mean_pmf", "product", "wls", "ella", "pool", "wls_robust")
OURS = "wls_robust"
LENGTHS = (1, 2, 3)  # and all
SCRATCH = Experiment(
    dataset="karoo",
    outside=None,
    networks=1,
    epochs=6,
    architecture={"name": "alexnet_like", "size": SCRATCH_SIZE},
    normalisation=Normalisation(kind="fixed", mean=0.45, std=0.2),
    batch=64,
    shift=4,
)


def alexnet_like(size: int, width: int = 128) -> tuple[nn.Module, int]:
    """AlexNet's five convolutions, pooled after the first, second and fifth, for small crops."""
    layers: list[nn.Module] = []
    inputs, side = 3, size
    for outputs, kernel, pooled in ((32, 5, 1), (64, 5, 1), (96, 3, 0), (96, 3, 0), (64, 3, 1)):
        stride = 2 if inputs == 3 else 1
        layers += [
            nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
            nn.BatchNorm2d(outputs),
        ]
        layers += [nn.ReLU(), *([nn.MaxPool2d(2)] if pooled else [])]
        inputs, side = outputs, side // stride // (2 if pooled else 1)
    layers += [
        nn.Flatten(),
        nn.Linear(inputs * side * side, 256),
        nn.ReLU(),
        nn.Linear(256, width),
        nn.ReLU(),
    ]
    return nn.Sequential(*layers), width


register_architecture("alexnet_like", alexnet_like)


@dataclass(frozen=True, slots=True)
class Crops:
    """All crops of the data set, and what is known of their tracks.

    Attributes:
        images: for the network from scratch.          [crops, 64, 64, 3] uint8
        features: of the trunk, where there is one.    [crops, d]
        track: the track of each crop.                 [crops]
    """

    tracks: TrackSet
    images: np.ndarray
    features: np.ndarray | None
    track: np.ndarray


@dataclass(frozen=True, slots=True)
class Seen:
    """One way of seeing the tracks of one split."""

    posterior: EnsemblePosterior
    validation: TrackViews
    test: TrackViews
    outside: TrackViews


def cameratraps(
    root: Path,
    trunk: Path | None,
    seeds: Sequence[int],
    cache: Path,
    progress: Progress,
    plots: Path | None = None,
    scratch: bool = True,
) -> dict[str, Any]:
    """The document of results over splits by site, and of the trunk also over splits by sequence."""
    crops = load_crops(root, trunk, cache, progress)
    sites = {track.id: track.group for track in crops.tracks.tracks}
    rows = []
    for seed in seeds:
        for by in ("site", "sequence"):
            part = split_rows(crops.tracks, by, seed)
            ways = ["trunk"] if trunk is not None else []
            for way in ways + (["scratch"] if by == "site" and scratch else []):
                progress(f"split by {by} {seed}, {way}", 0, 1)
                seen = see(crops, part, way, seed, cache, progress)
                values = {name: fit_fuser(name, *_fitting(seen)) for name in FUSERS}
                rows += [{"way": way, "by": by, "seed": seed, **row} for row in scores(seen, values)]
                if plots is not None and (way, by, seed) == ("trunk", "site", seeds[0]):
                    draw_two_sequences(crops, seen, values, part["test"], plots / "cameratraps-sequences.png")
    return {
        "experiment": "cameratraps",
        "data": crops.tracks.digest,
        "tracks": len(crops.tracks.tracks),
        "sites": len(set(sites.values())),
        "classes": list(crops.tracks.class_names),
        "seeds": list(seeds),
        "table": summary(rows),
        "rows": rows,
    }


def load_crops(root: Path, trunk: Path | None, cache: Path, progress: Progress) -> Crops:
    """The crops for both ways; features of the trunk are kept in the cache."""
    tracks = load_dataset("karoo", root, crop_size=TRUNK_SIZE, split_by="site")
    small = cut(tracks, SCRATCH_SIZE, 0.0, 0)
    return Crops(tracks, small.images, _features(tracks, trunk, cache, progress), small.track)


def _features(tracks: TrackSet, trunk: Path | None, cache: Path, progress: Progress) -> np.ndarray | None:
    if trunk is None:
        return None
    key = hashlib.sha256(trunk.read_bytes() + tracks.digest.encode()).hexdigest()[:12]
    file = cache / f"karoo-{key}.npy"
    if not file.is_file():
        run = Trunks([from_onnx(trunk, TRUNK_INPUT).graph], TRUNK_SIZE, "cpu")
        images = _inner(cut(tracks, TRUNK_SIZE, 0.0, border_of(TRUNK_SIZE)).images, TRUNK_SIZE)
        found = []
        for start in range(0, len(images), 64):
            progress("features of the trunk", start, len(images))
            found.append(run(np.ascontiguousarray(images[start : start + 64]))[0])
        cache.mkdir(parents=True, exist_ok=True)
        np.save(file, np.concatenate(found))
    return np.load(file)


def _inner(images: np.ndarray, size: int) -> np.ndarray:
    border = (images.shape[1] - size) // 2
    return images[:, border : border + size, border : border + size]


def split_rows(tracks: TrackSet, by: str, seed: int) -> dict[str, np.ndarray]:
    """Tracks of each part, by their place in the data set."""
    place = {track.id: number for number, track in enumerate(tracks.tracks)}
    if by == "sequence":
        tracks = replace(tracks, tracks=tuple(replace(track, group="") for track in tracks.tracks))
    splits = split_tracks(tracks, (), FRACTIONS, seed)
    names = ("train", "validation", "test", "outside")
    return {name: np.array([place[track.id] for track in getattr(splits, name).tracks]) for name in names}


def see(
    crops: Crops, part: dict[str, np.ndarray], way: str, seed: int, cache: Path, progress: Progress
) -> Seen:
    """Train or fit on the training tracks; what is seen of the others, and the posterior."""
    label = np.array([track.label for track in crops.tracks.tracks])
    rows = {name: np.flatnonzero(np.isin(crops.track, own)) for name, own in part.items()}
    train, check = rows["train"], rows["validation"]
    look = _from_scratch if way == "scratch" else _on_trunk
    outputs, prior = look(crops, label, train, check, seed, cache, progress)

    def views(name: str) -> TrackViews:
        return _track_views(part[name], crops.track, label, outputs)

    logits, features = outputs(train)
    curvature = DiagonalSum(logits.shape[1], logits.shape[2], features.shape[2])
    curvature.add(logits.astype(np.float64), features.astype(np.float64))
    return Seen(curvature.finish(prior), views("validation"), views("test"), views("outside"))


Outputs = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]  # rows -> logits, features


def _on_trunk(
    crops: Crops,
    label: np.ndarray,
    train: np.ndarray,
    check: np.ndarray,
    seed: int,
    cache: Path,
    progress: Progress,
) -> tuple[Outputs, float]:
    assert crops.features is not None
    phi = crops.features @ leading_directions(crops.features[train], LEADING)
    of_crop = label[crops.track]
    regression = Regression(phi[train], of_crop[train], len(crops.tracks.class_names))
    best = regression.best(phi[check], of_crop[check])
    weights = [bootstrap_weights(crops.track[train], 100 * seed + number) for number in range(HEADS)]
    heads = [regression.fit(best.penalty, best, weight) for weight in weights]
    basis = leading_directions(phi[train], DIRECTIONS)

    def outputs(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logits = np.stack([phi[rows] @ head.weight.T + head.bias for head in heads], axis=1)
        seen = phi[rows] @ basis
        rest = np.sqrt(np.maximum((phi[rows] ** 2).sum(axis=1) - (seen**2).sum(axis=1), 0))
        features = np.concatenate([seen, rest[:, None], np.ones((len(rows), 1))], axis=1)
        return logits, np.repeat(features[:, None], HEADS, axis=1)

    return outputs, best.penalty


def _from_scratch(
    crops: Crops,
    label: np.ndarray,
    train: np.ndarray,
    check: np.ndarray,
    seed: int,
    cache: Path,
    progress: Progress,
) -> tuple[Outputs, float]:
    key = hashlib.sha256(train.tobytes() + crops.tracks.digest.encode()).hexdigest()[:12]
    folder = cache / f"karoo-scratch-{key}"
    of_crop = label[crops.track]
    network = load_or_train(SCRATCH, crops.images[train], of_crop[train], (seed, 0), folder, progress)
    ensemble = Ensemble([network])

    def outputs(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        batches = [
            ensemble(SCRATCH.normalisation(torch.from_numpy(crops.images[rows[start : start + 256]])))
            for start in range(0, len(rows), 256)
        ]
        logits, features = (torch.cat(each).numpy() for each in zip(*batches, strict=True))
        return logits, features

    return outputs, 1.0


def _track_views(tracks: np.ndarray, track: np.ndarray, label: np.ndarray, outputs: Outputs) -> TrackViews:
    own = [np.flatnonzero(track == each) for each in tracks]
    steps = np.array([len(rows) for rows in own])
    logits, features = outputs(np.concatenate(own))
    ends = np.cumsum(steps)
    shape = (len(tracks), steps.max())
    padded = [np.zeros((*shape, *each.shape[1:]), np.float32) for each in (logits, features)]
    for place, (end, count) in enumerate(zip(ends, steps, strict=True)):
        for target, source in zip(padded, (logits, features), strict=True):
            target[place, :count] = source[end - count : end]
    return TrackViews.of_one_camera(padded[0], padded[1], steps, label[tracks])


def _fitting(seen: Seen) -> tuple[TrackViews, Any]:
    tracks = seen.validation
    return tracks, flat_views(seen.posterior, tracks.logits, tracks.features)


def pmfs(seen: Seen, name: str, values: Any, tracks: TrackViews) -> np.ndarray:
    """After every view; the last one stays.  [tracks, steps, classes]"""
    fuser = make_fuser(name, seen.posterior, values, window=tracks.longest)
    views = flat_views(seen.posterior, tracks.logits, tracks.features)
    found = pmf_along(fuser, views, tracks.longest, list(range(1, tracks.longest + 1)))
    last = np.minimum(np.arange(tracks.longest), tracks.steps[:, None] - 1)
    return np.take_along_axis(found, last[..., None], axis=1)


def scores(seen: Seen, values: dict[str, Any]) -> list[dict[str, Any]]:
    """One record for each fuser and length; "all" also against the rare species, and with sets."""
    rows = []
    for name in FUSERS:
        pmf, strange = (pmfs(seen, name, values[name], each) for each in (seen.test, seen.outside))
        for length in (*LENGTHS, 0):
            now = pmf[:, length - 1]
            row: dict[str, Any] = {"fuser": name, "L": length or "all", "tracks": len(now)}
            label = seen.test.label
            row |= {"accuracy": accuracy(now, label), "nll": nll(now, label), "brier": brier(now, label)}
            row["ece"] = ece(now, label)
            if not length:
                row["auroc"] = _detection(entropy(now), entropy(strange[:, -1]))
                row["auroc_near"] = _detection(_far(seen, seen.test), _far(seen, seen.outside))
                row |= _promised(seen, name, values[name], pmf)
            rows.append(row)
    return rows


def _detection(inside: np.ndarray, outside: np.ndarray) -> float:
    strange = np.r_[np.zeros(len(inside), bool), np.ones(len(outside), bool)]
    return auroc(np.r_[inside, outside], strange)


def _far(seen: Seen, tracks: TrackViews) -> np.ndarray:
    """Entropy of the mean pmf, times how unlike the five nearest validation tracks its mean feature is."""
    own, known = _mean_feature(tracks), _mean_feature(seen.validation)
    near = np.sort(own @ known.T, axis=1)[:, -5:].mean(axis=1)
    pmf = softmax(tracks.logits.astype(np.float64)).mean(axis=2)
    mean = (pmf * tracks.real[..., None]).sum(axis=1) / tracks.steps[:, None]
    return entropy(mean) * np.maximum(1 - near, 1e-6)


def _mean_feature(tracks: TrackViews) -> np.ndarray:
    """Of the first network's features, at length one.  [tracks, d]"""
    plain = tracks.features[:, :, 0, :-1] * tracks.real[..., None]
    mean = plain.sum(axis=1)
    return mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)


def _promised(seen: Seen, name: str, values: Any, pmf: np.ndarray) -> dict[str, float]:
    """Sets for 90% of the tracks: how many held the truth in every frame, and how large they were."""
    check, test = seen.validation, seen.test
    fused = pmfs(seen, name, values, check)
    reliance = calibrate(fused, check.real, check.label, check.regime, check.source)
    held, size = [], []
    for track in range(len(test)):
        own = pmf[track, : test.steps[track]]
        inside = reliance.sets(own, np.arange(1, len(own) + 1), 0.9)
        held.append(inside[:, test.label[track]].all())
        size.append(inside[-1].sum())
    return {"set_held": float(np.mean(held)), "set_size": float(np.mean(size))}


def summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean and spread over splits of every score."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["way"], row["by"], row["fuser"], row["L"]), []).append(row)
    table = []
    for (way, by, fuser, length), own in groups.items():
        numbers = [key for key, value in own[0].items() if isinstance(value, float)]
        spread = {key: float(np.std([row[key] for row in own], ddof=len(own) > 1)) for key in numbers}
        mean = {key: float(np.mean([row[key] for row in own])) for key in numbers}
        table.append({"way": way, "by": by, "fuser": fuser, "L": length, "mean": mean, "spread": spread})
    return table


def draw_two_sequences(
    crops: Crops, seen: Seen, values: dict[str, Any], tracks: np.ndarray, path: Path
) -> None:
    """A sequence whose last frame is wrong while the fused class is right, and one where fusion fails."""
    from lla_fusion_ros.lab.plots import COLOURS, figure

    names, test = crops.tracks.class_names, seen.test
    alone = pmfs(seen, "last", values["last"], test)
    fused = pmfs(seen, OURS, values[OURS], test)
    right = [each[:, -1].argmax(axis=1) == test.label for each in (alone, fused)]
    long = (test.steps >= 3) & (test.steps <= 6)
    chosen = []
    for wanted in (long & ~right[0] & right[1], long & ~right[1]):
        sure = np.where(wanted, fused[:, -1].max(axis=1), -1)
        chosen.append(int(sure.argmax()))
    columns = int(max(test.steps[track] for track in chosen))
    with figure(path, 4, columns, 1.7 * columns, 6.4) as axes:
        for axis in axes.ravel():
            axis.axis("off")
        for line, track in enumerate(chosen):
            frames = crops.images[crops.track == tracks[track]]
            for step in range(int(test.steps[track])):
                axes[2 * line, step].imshow(frames[step])
                bars = axes[2 * line + 1, step]
                bars.axis("on")
                top = np.argsort(-fused[track, step])[:3]
                bars.barh(range(3), fused[track, step, top], 0.4, color=COLOURS[0], label="fused")
                bars.barh(np.arange(3) + 0.4, alone[track, step, top], 0.4, color=COLOURS[1], label="alone")
                bars.set(xlim=(0, 1), yticks=range(3))
                bars.set_yticklabels([names[each] for each in top], fontsize=5)
                bars.invert_yaxis()
            axes[2 * line, 0].set_title(f"truth: {names[test.label[track]]}", fontsize=7, loc="left")
        axes[1, 0].legend(fontsize=5)
