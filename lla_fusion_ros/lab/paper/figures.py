"""The paper's figures: examples chosen by stated rules, and drawing them (never an image of a data set)."""

from __future__ import annotations

from collections.abc import Sequence
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

LENGTH, MISSED = 6, 3  # images in a row, and which of them is not recognised
SAMPLES = 200  # of each network's Gaussian


def draw_sequence(
    posterior: EnsemblePosterior, outputs: Outputs, label: int, class_names: Sequence[str], path: Path
) -> None:
    """Images of one class, one after the other, seen by the first network (figure seqfusion_cfar10).

    One column per image; on top each image alone, below the fused pmf of all images so far. They are the
    first LENGTH test images of that class in a row of which only one is not recognised.
    """
    rows = np.flatnonzero(outputs.labels == label)
    single = softmax(outputs.logits[rows, 0].astype(np.float64))
    right = single.argmax(axis=1) == label
    pattern = np.arange(LENGTH) != MISSED
    starts = [s for s in range(len(rows) - LENGTH + 1) if (right[s : s + LENGTH] == pattern).all()]
    if not starts:
        raise InputError(f"no {LENGTH} images of class {label} in a row of which only the fourth is missed")
    chosen = slice(starts[0], starts[0] + LENGTH)
    lines = [
        ("each image alone", single[chosen]),
        ("fused by eq. 25", _along("wls", posterior.select([0]), outputs, rows[chosen])),
        ("fused by the mean pmf", _along("mean_pmf", posterior.select([0]), outputs, rows[chosen])),
    ]
    with figure(path, len(lines), LENGTH, 1.75 * LENGTH, 1.75 * len(lines), sharex=True, sharey=True) as axes:
        for line, (title, pmfs) in enumerate(lines):
            for column, pmf in enumerate(pmfs):
                colours = [COLOURS[2] if m == label else COLOURS[0] for m in range(len(pmf))]
                axes[line, column].bar(range(len(pmf)), pmf, color=colours)
                axes[line, column].set(ylim=(0, 1), xticks=range(len(pmf)))
                axes[line, column].set_xticklabels(class_names, rotation=90, fontsize=6)
            axes[line, 0].set_ylabel(title, fontsize=7)
        for column in range(LENGTH):
            axes[0, column].set_title(f"image {column + 1}")


def _along(name: str, posterior: EnsemblePosterior, outputs: Outputs, rows: np.ndarray) -> np.ndarray:
    """The pmf of the first l images, by the first network.   [images, classes]"""
    fuser = make_fuser(name, posterior, window=len(rows))
    state, after = fuser.initial(1), []
    for row in rows:
        state = fuser.update(state, Views(outputs.logits[[row], :1], outputs.features[[row], :1]))
        after.append(fuser.predict(state)[0])
    return np.stack(after)


def draw_clouds(
    posterior: EnsemblePosterior, outputs: Outputs, class_names: Sequence[str], path: Path
) -> None:
    """The multimodal cloud of an ensemble against the single Gaussians that fusion makes of it.

    Logits of the two most probable classes of one image under every network (figure fusion_cfar10): the first
    that every network calls right with a probability between .6 and .9, and the one with the largest mutual
    information between class and network.
    """
    pmf = softmax(outputs.logits.astype(np.float64))
    own = pmf[np.arange(len(pmf)), :, outputs.labels]  # [images, networks]
    agreed = ((own > 0.6) & (own < 0.9)).all(axis=1)
    if not agreed.any():
        raise InputError(
            "no test image is called right by every network with a probability between .6 and .9"
        )
    divided = int((entropy(pmf.mean(axis=1)) - entropy(pmf).mean(axis=1)).argmax())
    examples = (("the networks agree", int(agreed.argmax())), ("the networks are divided", divided))
    with figure(path, 1, len(examples), 4.4 * len(examples), 3.9) as axes:
        for axis, (title, row) in zip(axes[0], examples, strict=True):
            first, second = _cloud(axis, posterior, outputs, row)
            axis.set(
                xlabel=f"logit of {class_names[first]}",
                ylabel=f"logit of {class_names[second]}",
                title=f"{title} (truth: {class_names[outputs.labels[row]]})",
            )
            title = "lines: 2 standard deviations; dots: each network"
            axis.legend(fontsize=7, title=title, title_fontsize=6)


def _cloud(axis: Any, posterior: EnsemblePosterior, outputs: Outputs, row: int) -> np.ndarray:
    """Samples of each network's Gaussian and the fused ones of one image; which two classes are shown.

    Logits are max-shifted (eq. 11), as the fusion rules take them.
    """
    logits = outputs.logits[row].astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    shown = np.argsort(-softmax(logits).mean(axis=0))[:2]
    variance = posterior.variance(outputs.features[row])  # [networks, classes]
    noise = np.random.default_rng(0).standard_normal((len(logits), SAMPLES, 2))
    for network, points in enumerate(logits[:, None, shown] + np.sqrt(variance)[:, None, shown] * noise):
        axis.scatter(*points.T, s=5, alpha=0.4, color=COLOURS[network % len(COLOURS)], lw=0)
    wls = 1.0 / (1.0 / variance).sum(axis=0)  # eq. 25 with independent networks, one view
    angle = np.linspace(0, 2 * np.pi, 100)
    for name, style, mean, spread in (
        ("fusion of LLAs", "-", wls * (logits / variance).sum(axis=0), wls),
        ("ELLA as printed", "--", logits.mean(axis=0), variance.sum(axis=0) / len(logits) ** 2),
    ):
        centre, radii = mean[shown], 2 * np.sqrt(spread[shown])
        ellipse = centre[:, None] + radii[:, None] * [np.cos(angle), np.sin(angle)]
        axis.plot(*ellipse, style, color="k", label=name)
    return shown
