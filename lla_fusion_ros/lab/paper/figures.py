"""The paper's figures: examples chosen by stated rules, and drawing them (never an image of a data set)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lla_fusion_ros.fusion import make_fuser
from lla_fusion_ros.lab.paper.network_outputs import Outputs
from lla_fusion_ros.lab.plots import COLOURS, figure
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.pmf import entropy, softmax
from lla_fusion_ros.types.views import Views

_TITLES = {"wls": "fused by eq. 25", "mean_pmf": "fused by the mean pmf"}


@dataclass(frozen=True, slots=True)
class SequenceExample:
    """Images of one class, one after the other, seen by one network (figure seqfusion_cfar10).

    Attributes:
        label: the class of all of them.
        rows: which test images.                                     [images]
        single: pmf of each image alone.                             [images, classes]
        fused: pmf of the first l images, by fuser.                  name -> [images, classes]
    """

    label: int
    rows: np.ndarray
    single: np.ndarray
    fused: dict[str, np.ndarray]


def sequence_example(
    posterior: EnsemblePosterior, outputs: Outputs, label: int, length: int = 6, network: int = 0
) -> SequenceExample:
    """The first `length` test images of that class in a row of which only the fourth is not recognised."""
    rows = np.flatnonzero(outputs.labels == label)
    single = softmax(outputs.logits[rows, network].astype(np.float64))
    right = single.argmax(axis=1) == label
    pattern = np.arange(length) != 3
    for start in range(len(rows) - length + 1):
        if (right[start : start + length] == pattern).all():
            break
    else:
        raise InputError(f"no {length} images of class {label} in a row of which only the fourth is missed")
    chosen = rows[start : start + length]
    fused = {
        name: _along(name, posterior.select([network]), outputs, chosen, network)
        for name in ("wls", "mean_pmf")
    }
    return SequenceExample(label, chosen, single[start : start + length], fused)


def _along(
    name: str, posterior: EnsemblePosterior, outputs: Outputs, rows: np.ndarray, network: int
) -> np.ndarray:
    fuser = make_fuser(name, posterior, window=len(rows))
    state = fuser.initial(1)
    after = []
    for row in rows:
        views = Views(outputs.logits[[row], network][:, None], outputs.features[[row], network][:, None])
        state = fuser.update(state, views)
        after.append(fuser.predict(state)[0])
    return np.stack(after)


@dataclass(frozen=True, slots=True)
class CloudExample:
    """Logits of two classes of one image under every network, and the fused Gaussians (figure fusion_cfar10).

    Attributes:
        row: which test image; label its class.
        classes: the two classes with the largest mean probability.
        points: samples of each network's Gaussian.               [networks, samples, 2]
        fused: mean and standard deviation, by rule.              name -> ([2], [2])
    """

    row: int
    label: int
    classes: tuple[int, int]
    points: np.ndarray
    fused: dict[str, tuple[np.ndarray, np.ndarray]]


def cloud_example(
    posterior: EnsemblePosterior, outputs: Outputs, row: int, samples: int = 200, seed: int = 0
) -> CloudExample:
    """Logits are max-shifted (eq. 11), as the fusion rules take them."""
    logits = outputs.logits[row].astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    order = np.argsort(-softmax(logits).mean(axis=0))[:2]
    variance = posterior.variance(outputs.features[row])  # [networks, classes]
    noise = np.random.default_rng(seed).standard_normal((len(logits), samples, 2))
    points = logits[:, None, order] + np.sqrt(variance)[:, None, order] * noise
    precision = 1.0 / variance
    wls_variance = 1.0 / precision.sum(axis=0)  # eq. 25 with independent networks, one view
    wls_mean = wls_variance * (precision * logits).sum(axis=0)
    ella_mean, ella_variance = logits.mean(axis=0), variance.sum(axis=0) / len(logits) ** 2
    fused = {
        "fusion of LLAs": (wls_mean[order], np.sqrt(wls_variance[order])),
        "ELLA as printed": (ella_mean[order], np.sqrt(ella_variance[order])),
    }
    return CloudExample(row, int(outputs.labels[row]), (int(order[0]), int(order[1])), points, fused)


def most_divided(outputs: Outputs) -> int:
    """The test image with the largest mutual information between class and network."""
    pmf = softmax(outputs.logits.astype(np.float64))
    return int((entropy(pmf.mean(axis=1)) - entropy(pmf).mean(axis=1)).argmax())


def most_agreed(outputs: Outputs) -> int:
    """The first test image that every network calls right with a probability between .6 and .9."""
    pmf = softmax(outputs.logits.astype(np.float64))
    own = pmf[np.arange(len(pmf)), :, outputs.labels]  # [images, networks]
    fine = ((own > 0.6) & (own < 0.9)).all(axis=1)
    if not fine.any():
        raise InputError(
            "no test image is called right by every network with a probability between .6 and .9"
        )
    return int(fine.argmax())


def sequence(example: SequenceExample, class_names: Sequence[str], path: Path) -> None:
    """One column per image; top row each image alone, below the fused pmf of all images so far."""
    rows = [("each image alone", example.single)]
    rows += [(_TITLES.get(name, name), pmf) for name, pmf in example.fused.items()]
    count = len(example.single)
    with figure(path, len(rows), count, 1.75 * count, 1.75 * len(rows), sharex=True, sharey=True) as axes:
        for line, (title, pmfs) in enumerate(rows):
            for column, pmf in enumerate(pmfs):
                colours = [COLOURS[2] if m == example.label else COLOURS[0] for m in range(len(pmf))]
                axes[line, column].bar(range(len(pmf)), pmf, color=colours)
                axes[line, column].set(ylim=(0, 1), xticks=range(len(pmf)))
                axes[line, column].set_xticklabels(class_names, rotation=90, fontsize=6)
            axes[line, 0].set_ylabel(title, fontsize=7)
        for column in range(count):
            axes[0, column].set_title(f"image {column + 1}")


def clouds(examples: Sequence[tuple[str, CloudExample]], class_names: Sequence[str], path: Path) -> None:
    """The multimodal cloud of an ensemble against the single Gaussians that fusion makes of it."""
    with figure(path, 1, len(examples), 4.4 * len(examples), 3.9) as axes:
        for axis, (title, example) in zip(axes[0], examples, strict=True):
            for network, points in enumerate(example.points):
                axis.scatter(*points.T, s=5, alpha=0.4, color=COLOURS[network % len(COLOURS)], lw=0)
            for style, (name, (mean, deviation)) in zip(("-", "--"), example.fused.items(), strict=True):
                _ellipse(axis, mean, 2 * deviation, style, name)
            first, second = (class_names[m] for m in example.classes)
            axis.set(
                xlabel=f"logit of {first}",
                ylabel=f"logit of {second}",
                title=f"{title} (truth: {class_names[example.label]})",
            )
            axis.legend(
                fontsize=7, title="lines: 2 standard deviations; dots: each network", title_fontsize=6
            )


def _ellipse(axis: Any, centre: np.ndarray, radii: np.ndarray, style: str, label: str) -> None:
    angle = np.linspace(0, 2 * np.pi, 100)
    axis.plot(
        centre[0] + radii[0] * np.cos(angle),
        centre[1] + radii[1] * np.sin(angle),
        style,
        color="k",
        label=label,
    )
