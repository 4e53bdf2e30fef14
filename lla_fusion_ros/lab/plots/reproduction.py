"""The figures of `lla-fusion reproduce`. They show pmfs and logits, never an image of a data set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lla_fusion_ros.lab.paper.figures import CloudExample, SequenceExample
from lla_fusion_ros.lab.plots.style import COLOURS, figure

_TITLES = {"wls": "fused by eq. 25", "mean_pmf": "fused by the mean pmf"}


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
