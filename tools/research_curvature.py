#!/usr/bin/env python3
"""Does another curvature, or more layers, give Laplace a larger part? One MNIST network of `reproduce`.

For each posterior the prior and T_theta are chosen by the NLL of validation images; the table gives the NLL
of test images. Run `lla-fusion reproduce mnist` first: its networks are read from the cache.

Example:
    python tools/research_curvature.py --root ~/datasets --json docs/results/research.json
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from research_fusers import write_table

from lla_fusion_ros.evaluation.outputs import default_cache
from lla_fusion_ros.metrics import ece, nll
from lla_fusion_ros.networks import Ensemble
from lla_fusion_ros.pmf import probit, softmax
from lla_fusion_ros.posterior.fit import fit_last_layer
from lla_fusion_ros.posterior.last_k import fit_last_k
from lla_fusion_ros.posterior.tune import tune
from lla_fusion_ros.reproduction.data import load_images
from lla_fusion_ros.reproduction.experiments import experiment
from lla_fusion_ros.reproduction.members import load_or_train

PRIORS = (0.1, 1.0, 10.0, 100.0)
TEMPERATURES = np.exp(np.linspace(-5, 5, 21))
TRAINING, VALIDATION, TEST = 10_000, 2_000, 10_000  # images; Jacobians of several layers are dear


def study(args: argparse.Namespace) -> dict[str, Any]:
    setup = experiment("mnist")
    train, _ = load_images(setup.dataset, args.root, "train")
    test, _ = load_images(setup.dataset, args.root, "test")
    folders = sorted((args.cache / "reproduce").glob("mnist-*/seed0")) or sorted(
        args.cache.glob("mnist-*/seed0")
    )
    if not folders:
        raise SystemExit(f"no networks in {args.cache}; run `lla-fusion reproduce mnist` first")
    used = len(train.labels) - setup.validation
    network = load_or_train(
        setup, train.images[:used], train.labels[:used], (0, 0), folders[0], lambda *_: None
    )

    def prepared(images: np.ndarray) -> torch.Tensor:
        return setup.normalisation(torch.from_numpy(np.ascontiguousarray(images)))

    fitting = prepared(train.images[:TRAINING]).split(250)
    validation = prepared(train.images[used : used + VALIDATION])
    labels = train.labels[used : used + VALIDATION]
    ensemble = Ensemble([network])
    outputs = {
        name: ensemble(images) for name, images in (("v", validation), ("t", prepared(test.images[:TEST])))
    }
    logits = {name: pair[0].double().numpy() for name, pair in outputs.items()}
    features = {name: pair[1].double().numpy() for name, pair in outputs.items()}
    answers = test.labels[:TEST]
    rows = [_row("softmax, no Laplace", softmax(logits["t"][:, 0]), answers, "–")]
    for curvature in ("diagonal", "full", "kron"):
        posterior: Any = fit_last_layer(ensemble, fitting, 1.0, curvature)
        chosen, tuning = tune(posterior, logits["v"], features["v"], labels)
        pmf = probit(logits["t"], chosen.variance(features["t"]))[:, 0]
        rows.append(_row(f"last layer, {curvature}", pmf, answers, f"{tuning.temperature:.3g}"))
    for k in (1, 2):
        pmf, temperature = _last_k(
            network, k, fitting, validation, labels, prepared(test.images[:TEST]), logits
        )
        rows.append(
            _row(f"last {k} layer{'s' * (k > 1)}, Jacobians, diagonal", pmf, answers, f"{temperature:.3g}")
        )
    note = (
        f"One five-layer network on MNIST; curvature from {TRAINING} training images, prior and T_θ from "
        f"{VALIDATION} validation images, scored on {TEST} test images."
    )
    return {"header": ["posterior", "NLL", "ECE", "T_θ chosen"], "rows": rows, "note": note}


def _row(title: str, pmf: np.ndarray, labels: np.ndarray, temperature: str) -> list[str]:
    return [title, f"{nll(pmf, labels):.4f}", f"{ece(pmf, labels):.4f}", temperature]


def _last_k(
    network: Any,
    k: int,
    fitting: Any,
    validation: torch.Tensor,
    labels: np.ndarray,
    test: torch.Tensor,
    logits: Any,
) -> tuple[np.ndarray, float]:
    best: tuple[float, float, Any] = (np.inf, 0.0, None)
    for prior in PRIORS:
        posterior = fit_last_k(network, fitting, k, prior)
        variance = _variances(posterior, validation)
        for temperature in (0.0, *TEMPERATURES):
            loss = nll(probit(logits["v"][:, 0], temperature * variance), labels)
            if loss < best[0]:
                best = (loss, float(temperature), posterior)
    return probit(logits["t"][:, 0], best[1] * _variances(best[2], test)), best[1]


def _variances(posterior: Any, images: torch.Tensor) -> np.ndarray:
    parts = [np.diagonal(posterior.covariance(part), axis1=1, axis2=2) for part in images.split(500)]
    return np.concatenate(parts)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument(
        "--cache", type=Path, default=default_cache(), help="where `reproduce` kept its networks"
    )
    parser.add_argument("--json", type=Path, required=True, help="results; other tables in the file are kept")
    args = parser.parse_args()
    torch.set_num_threads(1)
    write_table(args.json, "laplace", study(args))
    return 0


if __name__ == "__main__":
    sys.exit(main())
