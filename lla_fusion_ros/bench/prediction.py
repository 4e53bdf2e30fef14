"""What uncertainty costs when classifying: logits, covariance and pmf against plain softmax."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

from lla_fusion_ros.bench.timing import interleaved
from lla_fusion_ros.bench.workload import random_bundle, random_crops
from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.classifier import Classifier

SIZES = ((10, 84), (43, 84), (43, 256))  # M classes, d features
BATCHES = (1, 16, 64)
SAMPLES = 64
# The vehicle's networks first; the small LeNet is the hardest case, for its forward pass costs so little.
CASES: tuple[tuple[str, int], ...] = (("road", 5), ("road", 1), ("lenet", 1))


def plain_softmax(bundle: Bundle) -> Callable[[np.ndarray], np.ndarray]:
    """What one would write without this package's posterior: the same networks, forward and softmax."""
    ensemble, normalise = bundle.ensemble(), bundle.normalisation()

    def classify(crops: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            logits, _ = ensemble(normalise(torch.from_numpy(crops)))
            return torch.softmax(logits, dim=-1).numpy()

    return classify


def measure_prediction(rounds: int, quick: bool = False) -> Iterator[dict[str, Any]]:
    """Records of the `prediction` section, one after the other."""
    for network, members in CASES[:1] if quick else CASES:
        for classes, width in SIZES:
            bundle = random_bundle(classes, width, members, {"name": network})
            plain, ours = plain_softmax(bundle), Classifier(bundle, "cpu", variance=True)
            for batch in BATCHES[:2] if quick else BATCHES:
                crops = random_crops(batch)
                timed = interleaved(
                    {
                        "plain": partial(plain, crops),
                        "probit": partial(ours.predict, crops),
                        "sobol64": partial(ours.predict, crops, SAMPLES),
                    },
                    rounds,
                )
                for method in ("probit", "sobol64"):
                    yield {
                        "network": network,
                        "networks": members,
                        "M": classes,
                        "d": width,
                        "batch": batch,
                        "method": method,
                        **timed.ratio(method, "plain").record("ratio_plain"),
                        "plain_ms": round(1e3 * timed.cost("plain").median, 4),
                        "ms": round(1e3 * timed.cost(method).median, 4),
                    }
