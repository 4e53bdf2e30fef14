"""What the paper's figures show, as numbers ready to draw: chosen by stated rules, never by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.fusion import make_fuser
from lla_fusion_ros.lab.paper.network_outputs import Outputs
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.pmf import softmax
from lla_fusion_ros.types.views import Views


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
    mean = pmf.mean(axis=1)
    spread = -(mean * np.log(np.maximum(mean, 1e-300))).sum(axis=1)
    spread += (pmf * np.log(np.maximum(pmf, 1e-300))).sum(axis=2).mean(axis=1)
    return int(spread.argmax())


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
