"""The networks on this computer's devices: how fast, and whether they say what the CPU says. For people with
a GPU, which the developers have not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from bench.machine import machine
from bench.timing import Spread
from lla_fusion_ros import __version__
from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.types.pmf import softmax

CROPS = (1, 5, 20, 100)
ROUNDS = 20


def report(bundle: Bundle) -> str:
    """A text for an issue: the machine, and a table."""
    found = machine()
    lines = [
        f"lla_fusion_ros {__version__}, model {bundle.source}",
        f"{found['cpu']}, {found['cores']} cores, load {found['load']}, torch {torch.__version__}",
        *devices(),
        "",
        "| device | precision | crops | ms a call | quartiles | crops/s | farthest from the CPU's pmf |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in measured(bundle):
        spread: Spread = row["ms"]
        lines.append(
            f"| {row['device']} | {row['precision']} | {row['crops']} | {spread.median:.2f} "
            f"| {spread.low:.2f} to {spread.high:.2f} | {1e3 * row['crops'] / spread.median:.0f} "
            f"| {row['apart']:.5f} |"
        )
    return "\n".join(lines)


def devices() -> list[str]:
    """What torch and ONNX Runtime find here."""
    said = []
    for number in range(torch.cuda.device_count()):
        own = torch.cuda.get_device_properties(number)
        said.append(f"cuda:{number}: {own.name}, {own.total_memory / 1e9:.1f} GB, CUDA {torch.version.cuda}")
    try:
        import onnxruntime
    except ImportError:
        return said or ["no CUDA device"]
    providers = ", ".join(onnxruntime.get_available_providers())
    return [*(said or ["no CUDA device"]), f"ONNX Runtime {onnxruntime.__version__}: {providers}"]


def measured(bundle: Bundle) -> Iterator[dict[str, Any]]:
    """One record for each device, precision and number of crops; a call ends when its result is here."""
    side = bundle.input_size
    crops = np.random.default_rng(0).integers(0, 256, (max(CROPS), side, side, 3), np.uint8)
    truth = softmax(Classifier(bundle, "cpu", "float32")(crops).logits)
    kinds = [("cpu", "float32"), ("cpu", "auto")]
    if torch.cuda.is_available():
        kinds += [("cuda", "float32"), ("cuda", "float16")]
    for device, precision in kinds:
        classifier = Classifier(bundle, device, precision)
        apart = float(np.abs(softmax(classifier(crops).logits) - truth).max())
        for count in CROPS:
            classifier.warm_up(count)
            times = []
            for _ in range(ROUNDS):
                begun = time.perf_counter()
                classifier(crops[:count])
                times.append(1e3 * (time.perf_counter() - begun))
            yield {
                "device": classifier.device,
                "precision": classifier.precision,
                "crops": count,
                "ms": Spread.of(times),
                "apart": apart,
            }
