"""The paper's third experiment on real camera traps: sequences of animals, sites that were never seen.

Two ways to the same tracks: one network from scratch, as the paper has it, and heads on the features of a
network that somebody else trained. Every site is new once: it is one of five folds, and the other four train
and calibrate. Fusers are fitted on what heads say of sites they never saw.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from lla_fusion_ros.lab.calibration.fusers import fit_fuser
from lla_fusion_ros.lab.datasets import load_dataset
from lla_fusion_ros.lab.datasets.crops import cut
from lla_fusion_ros.lab.importing.head import FittedHead, cross_fit, folds_of, leading_directions
from lla_fusion_ros.lab.importing.preprocess import Preprocessing
from lla_fusion_ros.lab.importing.sources import from_onnx
from lla_fusion_ros.lab.paper.experiments import Experiment, load_or_train
from lla_fusion_ros.lab.paper.network_outputs import Progress
from lla_fusion_ros.lab.paper.trap_scores import FUSERS, Seen, draw_two_sequences, fitting, scores, summary
from lla_fusion_ros.networks import Ensemble, Normalisation, register_architecture
from lla_fusion_ros.networks.heads import seen_features
from lla_fusion_ros.networks.onnx_engine import Trunks
from lla_fusion_ros.posterior.fit import DiagonalSum
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_set import TrackSet
from lla_fusion_ros.types.track_views import TrackViews

# Directions of the trunk's features that the posterior sees, and bootstrap heads.
DIRECTIONS, HEADS = 62, 3
TRUNK_SIZE, SCRATCH_SIZE = 224, 64
TRUNK_INPUT = Preprocessing(mean=(127 / 255,), std=(128 / 255,), size=TRUNK_SIZE)  # EfficientNet-Lite's own
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


def cameratraps(
    root: Path,
    trunk: Path | None,
    seeds: Sequence[int],
    cache: Path,
    progress: Progress,
    plots: Path | None = None,
    scratch: bool = True,
) -> dict[str, Any]:
    """The document of results over folds of the sites, and of the trunk also over folds of the sequences.

    `seeds` are the folds to test, of FOLDS.
    """
    crops = load_crops(root, trunk, cache, progress)
    sites = {track.id: track.group for track in crops.tracks.tracks}
    rows = []
    for seed in seeds:
        for by in ("site", "sequence"):
            part = parts_of(crops.tracks, by, seed)
            ways = ["trunk"] if trunk is not None else []
            for way in ways + (["scratch"] if by == "site" and scratch else []):
                progress(f"split by {by} {seed}, {way}", 0, 1)
                seen = see(crops, part, way, by, seed, cache, progress)
                values = {name: fit_fuser(name, *fitting(seen)) for name in FUSERS}
                rows += [{"way": way, "by": by, "seed": seed, **row} for row in scores(seen, values)]
                if plots is not None and (way, by, seed) == ("trunk", "site", seeds[0]):
                    names, frames = crops.tracks.class_names, _frames(crops, part["test"])
                    draw_two_sequences(names, frames, seen, values, plots / "cameratraps-sequences.png")
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
    small = cut(tracks, SCRATCH_SIZE, 0.0)
    return Crops(tracks, small.images, _features(tracks, trunk, cache, progress), small.track)


def _features(tracks: TrackSet, trunk: Path | None, cache: Path, progress: Progress) -> np.ndarray | None:
    if trunk is None:
        return None
    key = hashlib.sha256(trunk.read_bytes() + tracks.digest.encode()).hexdigest()[:12]
    file = cache / f"karoo-{key}.npy"
    if not file.is_file():
        run = Trunks([from_onnx(trunk, TRUNK_INPUT, keep_head=False).graph], TRUNK_SIZE, "cpu")
        images = cut(tracks, TRUNK_SIZE, 0.0).images
        found = []
        for start in range(0, len(images), 64):
            progress("features of the trunk", start, len(images))
            found.append(run(images[start : start + 64])[0])
        cache.mkdir(parents=True, exist_ok=True)
        np.save(file, np.concatenate(found))
    return np.load(file)


def parts_of(tracks: TrackSet, by: str, test: int) -> dict[str, np.ndarray]:
    """Tracks of each part, by their place in the data set; fold `test` is tested, the next is validation."""
    known = np.array([place for place, track in enumerate(tracks.tracks) if track.label >= 0])
    names = [tracks.tracks[place].group if by == "site" else tracks.tracks[place].id for place in known]
    fold = folds_of(np.array(names))
    if not 0 <= test <= fold.max():
        raise InputError(f"--seeds {test}: the folds of camera traps are 0 to {fold.max()}")
    check = (test + 1) % (fold.max() + 1)
    return {
        "train": known[(fold != test) & (fold != check)],
        "validation": known[fold == check],
        "test": known[fold == test],
        "outside": np.array([place for place, track in enumerate(tracks.tracks) if track.label < 0]),
    }


def see(
    crops: Crops, part: dict[str, np.ndarray], way: str, by: str, seed: int, cache: Path, progress: Progress
) -> Seen:
    """Train or fit on the training tracks; what is seen of the others, and the posterior."""
    label = np.array([track.label for track in crops.tracks.tracks])
    if way == "scratch":
        outputs, training = _from_scratch(crops, label, part["train"], seed, cache, progress)
        left_out, check, prior = outputs, part["validation"], 1.0
    else:
        check = training = np.sort(np.concatenate([part["train"], part["validation"]]))
        outputs, left_out, prior = _on_trunk(crops, label, training, by, seed)
    logits, features = outputs(np.flatnonzero(np.isin(crops.track, training)))
    curvature = DiagonalSum(logits.shape[1], logits.shape[2], features.shape[2])
    curvature.add(logits.astype(np.float64), features.astype(np.float64))
    return Seen(
        curvature.finish(prior),
        _track_views(check, crops.track, label, left_out),
        _track_views(part["test"], crops.track, label, outputs),
        _track_views(part["outside"], crops.track, label, outputs),
    )


Outputs = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]  # rows -> logits, features


def _on_trunk(
    crops: Crops, label: np.ndarray, training: np.ndarray, by: str, seed: int
) -> tuple[Outputs, Outputs, float]:
    """What heads say, what those say that never saw the fold of a training view, and their prior."""
    assert crops.features is not None
    phi, of_crop = crops.features, label[crops.track]
    rows = np.flatnonzero(np.isin(crops.track, training))
    groups = np.array([track.group if by == "site" else track.id for track in crops.tracks.tracks])
    classes = len(crops.tracks.class_names)
    track = crops.track[rows]
    fit = cross_fit(phi[rows], of_crop[rows], track, groups[track], classes, HEADS, 100 * seed)
    basis = leading_directions(phi[rows], DIRECTIONS)
    fold = np.full(len(phi), -1)
    fold[rows] = fit.fold

    def said(heads: Sequence[FittedHead], chosen: np.ndarray) -> np.ndarray:
        return np.stack([phi[chosen] @ head.weight.T + head.bias for head in heads], axis=1)

    def seen(chosen: np.ndarray) -> np.ndarray:
        return np.repeat(seen_features(phi[chosen], basis)[:, None], HEADS, axis=1)

    def outputs(chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return said(fit.heads, chosen), seen(chosen)

    def left_out(chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        logits = np.empty((len(chosen), HEADS, classes))
        for number, heads in enumerate(fit.left_out):
            own = fold[chosen] == number
            logits[own] = said(heads, chosen[own])
        return logits, seen(chosen)

    return outputs, left_out, fit.heads[0].penalty


def _from_scratch(
    crops: Crops, label: np.ndarray, training: np.ndarray, seed: int, cache: Path, progress: Progress
) -> tuple[Outputs, np.ndarray]:
    train = np.flatnonzero(np.isin(crops.track, training))
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

    return outputs, training


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


def _frames(crops: Crops, tracks: np.ndarray) -> list[np.ndarray]:
    """The crops of each of these tracks."""
    return [crops.images[crops.track == track] for track in tracks]
