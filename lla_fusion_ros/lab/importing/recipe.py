"""The whole way from a trained network and a data set to a bundle: cut, fit heads, calibrate."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.bundle.bundle import ONNX, graph_tensors
from lla_fusion_ros.images.quality import crop_quality
from lla_fusion_ros.lab.calibration.assemble import CalibrationOptions, Stage, Trained, calibrated_bundle
from lla_fusion_ros.lab.calibration.cross_fit import Part
from lla_fusion_ros.lab.datasets import Splits, TrackSet, border_of, cut, degrade
from lla_fusion_ros.lab.importing.head import (
    FittedHead,
    Regression,
    best_penalty,
    leading_directions,
    seen_width,
)
from lla_fusion_ros.lab.training.recipe import dataset_record, split_for
from lla_fusion_ros.networks.heads import Head, views_of
from lla_fusion_ros.networks.onnx_engine import Trunks
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.views import Views

FEATURES, HEADS = "features of the training images", "heads"
KEPT_PRIOR = 1.0  # precision, before it is tuned, where nobody knows what the head was trained with
Outputs = Callable[[np.ndarray], list[np.ndarray]]  # crops -> [n, d] of every trunk


@dataclass(frozen=True, slots=True)
class Source:
    """A network that somebody trained.

    Attributes:
        graph: takes crops, gives features.
        size: side of its crops.
        weight, bias: of its own head, where it has one.    [classes, d], [classes]
    """

    name: str
    graph: bytes
    size: int
    weight: np.ndarray | None
    bias: np.ndarray | None


@dataclass(frozen=True, slots=True)
class ImportRecipe:
    """Everything that decides what comes out; the fields after `margin` are those of training's `Recipe`.

    Attributes:
        sources: networks, one or several, of one crop size.
        labels: the classes of their own heads, in order; empty: those of the data set.
        new_heads: so many heads are fitted on each trunk; 0 keeps the networks' own.
    """

    sources: tuple[Source, ...]
    labels: tuple[str, ...] = ()
    new_heads: int = 0
    margin: float = 0.0
    calibration: CalibrationOptions = field(default_factory=CalibrationOptions)
    holdout: tuple[int, ...] = ()
    fractions: tuple[float, float, float] = (0.7, 0.15, 0.15)
    split_seed: int = 0
    own_test: bool = False
    quick: bool = False
    data_options: dict[str, Any] = field(default_factory=dict)
    command: str = ""

    @property
    def size(self) -> int:
        return self.sources[0].size

    @property
    def networks(self) -> int:
        return len(self.sources) * max(self.new_heads, 1)

    def __post_init__(self) -> None:
        sizes = {source.size for source in self.sources}
        if len(sizes) != 1:
            raise InputError(f"networks of one bundle see the same crops; these take {sorted(sizes)} pixels")
        for source in self.sources:
            if source.weight is None and not self.new_heads:
                raise InputError(f"'{source.name}' was cut at a tensor: its head is gone, use --head new")


class ImportedNetworks:
    """Heads on trunks in ONNX Runtime, as calibration wants them."""

    def __init__(self, outputs: Outputs, graphs: Sequence[bytes], heads: Sequence[Head]) -> None:
        self._outputs, self._graphs, self.heads = outputs, graphs, list(heads)

    def __len__(self) -> int:
        return len(self.heads)

    def classify(self, crops: np.ndarray) -> Views:
        both = views_of(self.heads, self._outputs(crops))
        classes = len(self.heads[0].weight)
        return Views(both[..., :classes], both[..., classes:], crop_quality(crops))

    def scale(self, temperatures: Sequence[float]) -> None:
        self.heads = [
            replace(head, weight=head.weight / np.float32(scale), bias=head.bias / np.float32(scale))
            for head, scale in zip(self.heads, temperatures, strict=True)
        ]

    def tensors(self) -> dict[str, np.ndarray]:
        return graph_tensors({"float32": self._graphs}, self.heads)


def run_import(
    recipe: ImportRecipe,
    tracks: TrackSet,
    cache: Path | None = None,
    threads: int = 0,
    stage: Stage = lambda name, done, total: None,
) -> Bundle:
    """Fit heads where wanted, then everything that comes after training.

    What the trunks say of each batch of crops is kept in `cache`: an interrupted run goes on from there.
    """
    tracks = relabelled(tracks, recipe)
    splits = split_for(recipe, tracks)
    graphs = [source.graph for source in recipe.sources]
    outputs = cached(Trunks(graphs, recipe.size, threads=threads), graphs, cache)
    heads, stand_ins, prior = _heads(recipe, splits, outputs, stage)
    parts = [
        Part(ImportedNetworks(outputs, graphs, each), splits.train, splits.validation) for each in stand_ins
    ]
    trained = Trained(
        ImportedNetworks(outputs, graphs, heads),
        {"name": ONNX},
        {},
        recipe.size,
        recipe.margin,
        prior,
        {
            "networks": [source.name for source in recipe.sources],
            "new_heads": recipe.new_heads,
            "saw_validation": bool(stand_ins),
            "quick": recipe.quick,
            "commands": [recipe.command],
        },
        trunks=tuple(head.trunk for head in heads),
    )
    return calibrated_bundle(
        trained, splits, dataset_record(recipe, tracks, splits), recipe.calibration, stage, parts
    )


def relabelled(tracks: TrackSet, recipe: ImportRecipe) -> TrackSet:
    """The data set with the classes of the networks' own heads; others are the outside world."""
    if recipe.new_heads:
        return tracks
    own = recipe.sources[0].weight
    assert own is not None
    labels = recipe.labels or tracks.class_names
    if any(source.weight is None or len(source.weight) != len(labels) for source in recipe.sources):
        raise InputError(
            f"the network has {len(own)} classes, {'--labels' if recipe.labels else 'the data set'} names "
            f"{len(labels)}: name the network's classes with --labels, or fit other ones with --head new"
        )
    places = {name: place for place, name in enumerate(labels)}
    if not set(places) & set(tracks.class_names):
        raise InputError(
            f"none of the data set's classes ({', '.join(tracks.class_names[:5])} ...) is among --labels "
            f"({', '.join(labels[:5])} ...)"
        )
    number = [places.get(name, -1) for name in tracks.class_names]
    moved = tuple(
        replace(track, label=number[track.label] if track.label >= 0 else -1) for track in tracks.tracks
    )
    return replace(tracks, class_names=tuple(labels), tracks=moved, mirrored=())


def cached(trunks: Trunks, graphs: Sequence[bytes], folder: Path | None) -> Outputs:
    """The trunks, with what they said of the same crops before."""
    if folder is None:
        return trunks
    made_by = hashlib.blake2b(b"".join(graphs), digest_size=16).digest()

    def outputs(crops: np.ndarray) -> list[np.ndarray]:
        key = hashlib.blake2b(made_by, digest_size=16)
        key.update(np.ascontiguousarray(crops).data)
        file = folder / f"{key.hexdigest()}.npz"
        try:
            with np.load(file, allow_pickle=False) as kept:
                return [kept[f"arr_{number}"] for number in range(len(kept.files))]
        except (OSError, ValueError, KeyError, EOFError):
            pass
        found = trunks(crops)
        folder.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part.npz")
        np.savez(part, *found)  # whole or not at all
        part.replace(file)
        return found

    return outputs


def clear(folder: Path) -> None:
    """Remove what `cached` kept."""
    shutil.rmtree(folder, ignore_errors=True)


def _heads(
    recipe: ImportRecipe, splits: Splits, outputs: Outputs, stage: Stage
) -> tuple[list[Head], list[list[Head]], float]:
    """All heads, those that stand in for them in calibration, and the precision of their prior.

    New heads take seconds, so the validation tracks train them, too: heads of the training tracks alone are
    calibrated on these in their place.
    """
    classes = len(splits.train.class_names)
    training = _features(recipe, splits.train, outputs, stage)
    bases = _bases(training.outputs, recipe.networks, classes)

    def made(fitted: Iterable[tuple[int, FittedHead]]) -> list[Head]:
        return [
            Head(trunk, head.weight.astype(np.float32), head.bias.astype(np.float32), bases[trunk])
            for trunk, head in fitted
        ]

    if not recipe.new_heads:
        own = [(source.weight, source.bias) for source in recipe.sources]
        kept = [FittedHead(w, b, KEPT_PRIOR) for w, b in own if w is not None and b is not None]
        return made(enumerate(kept)), [], KEPT_PRIOR
    validation = _features(recipe, splits.validation, outputs, stage)
    both = (*splits.train.tracks, *splits.validation.tracks)
    label = np.concatenate([training.label, validation.label])
    track = np.concatenate([training.track, validation.track + len(splits.train.tracks)])
    group = np.array([each.group or each.id for each in both])[track]
    fitted: list[tuple[int, FittedHead]] = []
    before: list[tuple[int, FittedHead]] = []  # of the training tracks alone
    few = len(training.label)
    for trunk in range(len(recipe.sources)):
        stage(HEADS, trunk, len(recipe.sources))
        phi = np.concatenate([training.outputs[trunk], validation.outputs[trunk]])
        penalty = best_penalty(phi, label, group, classes)
        for rows, found in ((slice(None), fitted), (slice(few), before)):
            heads = Regression(phi[rows], label[rows], classes).several(
                penalty, track[rows], recipe.new_heads, recipe.calibration.seed
            )
            found += [(trunk, head) for head in heads]
    prior = float(np.mean([head.penalty for _, head in fitted]))
    return made(fitted), [made(before)], prior


@dataclass(frozen=True, slots=True)
class _Features:
    """outputs: [n, d] of every trunk; label, track [n]."""

    outputs: list[np.ndarray]
    label: np.ndarray
    track: np.ndarray


def _features(recipe: ImportRecipe, part: TrackSet, outputs: Outputs, stage: Stage) -> _Features:
    """Of every crop as it is: heads that also saw degraded ones did worse on ordinary ones."""
    crops = degrade(
        cut(part, recipe.size, recipe.margin, border_of(recipe.size)), "clean", recipe.calibration.seed
    )
    found: list[list[np.ndarray]] = []
    for at in range(0, len(crops), 256):
        stage(FEATURES, at, len(crops))
        found.append(outputs(crops.images[at : at + 256]))
    joined = [np.concatenate(parts) for parts in zip(*found, strict=True)]
    if not all(np.isfinite(each).all() for each in joined):
        raise InputError(
            "the network returns NaN or infinity on the training images; are --mean, --std right?"
        )
    return _Features(joined, crops.label, crops.track)


def _bases(outputs: Sequence[np.ndarray], networks: int, classes: int) -> list[np.ndarray | None]:
    """Of every trunk: the directions that the posterior sees, of all trunks equally many; None: all."""
    widths = [each.shape[1] for each in outputs]
    seen = min(seen_width(width, networks, classes) for width in widths)
    if all(width == seen for width in widths):
        return [None] * len(widths)
    return [leading_directions(each, min(seen, each.shape[1] - 1)) for each in outputs]
