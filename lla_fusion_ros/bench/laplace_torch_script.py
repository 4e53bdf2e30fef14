"""Run by `laplace_torch.py` in laplace-torch's own environment: both libraries in turn on one network."""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from typing import Any

import torch

from lla_fusion_ros.bench.fit import BATCH, images
from lla_fusion_ros.bench.timing import interleaved
from lla_fusion_ros.bench.workload import random_bundle, random_crops
from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.classifier import Classifier
from lla_fusion_ros.posterior.fit import fit_last_layer

SIZES = ((10, 84), (43, 84))
BATCHES = (1, 16, 64)
FIT_CLASSES, FIT_WIDTH = 43, 84


def fitted(bundle: Bundle, count: int) -> tuple[Any, float]:
    """laplace-torch's last-layer kron posterior of the first network, and the CPU seconds of its fit."""
    from laplace import Laplace  # type: ignore[import-not-found]  # only that environment has it

    data = images(count)
    labels = torch.randint(0, bundle.classes, (count,), generator=torch.Generator().manual_seed(0))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data, labels), batch_size=BATCH)
    theirs = Laplace(
        bundle.members()[0], "classification", subset_of_weights="last_layer", hessian_structure="kron"
    )
    begun = time.process_time()
    theirs.fit(loader)
    return theirs, time.process_time() - begun


def prediction(rounds: int) -> list[dict[str, Any]]:
    records = []
    for classes, width in SIZES:
        bundle = random_bundle(classes, width, networks=1)
        theirs, _ = fitted(bundle, 512)
        ours, normalise = Classifier(bundle, "cpu", variance=True), bundle.normalisation()
        for batch in BATCHES:
            crops = random_crops(batch)
            prepared = normalise(torch.from_numpy(crops))
            timed = interleaved(
                {
                    "ours": partial(ours.predict, crops),
                    "theirs": partial(theirs, prepared, link_approx="probit"),
                },
                rounds,
            )
            records.append(
                {
                    "M": classes,
                    "d": width,
                    "batch": batch,
                    **timed.ratio("theirs", "ours").record("speedup"),
                    "ms": round(1e3 * timed.cost("ours").median, 4),
                    "laplace_torch_ms": round(1e3 * timed.cost("theirs").median, 4),
                }
            )
    return records


def fit(count: int) -> dict[str, Any]:
    bundle = random_bundle(FIT_CLASSES, FIT_WIDTH, networks=1)
    theirs = fitted(bundle, count)[1]
    seconds = {}
    for curvature in ("diagonal", "kron"):
        batches = images(count).split(BATCH)
        begun = time.process_time()
        fit_last_layer(bundle.ensemble(), batches, 1.0, curvature)
        seconds[curvature] = time.process_time() - begun
    return {
        "N": count,
        "M": FIT_CLASSES,
        "d": FIT_WIDTH,
        "networks": 1,
        "curvature": "kron",
        "against": "laplace-torch kron",
        "seconds": round(seconds["kron"], 4),
        "diagonal_seconds": round(seconds["diagonal"], 4),
        "laplace_torch_seconds": round(theirs, 4),
        "speedup": round(theirs / seconds["kron"], 3),
        "diagonal_speedup": round(theirs / seconds["diagonal"], 3),
    }


def main() -> None:
    torch.set_num_threads(1)
    rounds, crops = (int(word) for word in sys.argv[1:3])
    print(json.dumps({"records": prediction(rounds), "fit": [fit(crops)]}))


if __name__ == "__main__":
    main()
