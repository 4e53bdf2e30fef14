"""What fitting the posterior costs: one pass over N crops."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from lla_fusion_ros.bench.timing import Spread
from lla_fusion_ros.bench.workload import random_bundle, random_crops
from lla_fusion_ros.posterior.fit import fit_last_layer

CLASSES, WIDTH, CROPS, BATCH = 43, 84, 10_000, 128
CURVATURES = ("diagonal", "kron", "full")


def images(count: int) -> torch.Tensor:
    """Random crops as the networks take them; few different ones, so that they are made quickly."""
    bundle = random_bundle(CLASSES, WIDTH, 1)
    some = bundle.normalisation()(torch.from_numpy(random_crops(min(count, 500))))
    return some.repeat(-(-count // len(some)), 1, 1, 1)[:count]


def measure_fit(repeats: int, quick: bool = False) -> Iterator[dict[str, Any]]:
    """Records of the `fit` section: the networks' forward pass alone, and with each curvature's sums."""
    crops = 2_000 if quick else CROPS
    for networks in (1, 5):
        bundle = random_bundle(CLASSES, WIDTH, networks)
        ensemble = bundle.ensemble()
        batches = images(crops).split(BATCH)
        forward: list[float] = []
        fits: dict[str, list[float]] = {name: [] for name in CURVATURES if name != "full" or networks == 1}
        for _ in range(repeats):
            begun = time.process_time()
            with torch.inference_mode():
                for batch in batches:
                    ensemble(batch)
            forward.append(time.process_time() - begun)
            for name, seconds in fits.items():
                begun = time.process_time()
                fit_last_layer(ensemble, batches, 1.0, name)  # type: ignore[arg-type]
                seconds.append(time.process_time() - begun)
        for name, seconds in fits.items():
            yield {
                "N": crops,
                "M": CLASSES,
                "d": WIDTH,
                "networks": networks,
                "curvature": name,
                **Spread.of(seconds).record("seconds"),
                **Spread.of(np.array(seconds) / np.array(forward)).record("ratio_forward"),
            }
