"""Numbers over all objects of many bags.

Each is a sum over objects divided by another such sum, so bags can be added up, and drawn again.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lla_fusion_ros.types.metrics import Reliability, ece_of
from lla_fusion_ros.warnings.result import OUT_OF_DISTRIBUTION

# Name and what it says; those about the truth are over objects whose truth is told.
METRICS = {
    "accuracy": "share of views of known objects whose fused class is right",
    "nll": "mean negative log-likelihood of the truth over these views, in nats",
    "last_accuracy": "share of known objects whose last class is right",
    "missed": "share of unknown objects that were not called out of distribution",
    "false_alarms": "share of known objects with one id that were warned of",
    "warned": "share of all objects that were warned of",
    "changes": "class changes per object",
    "entropy": "last entropy of an object, in nats",
}
LESS_IS_BETTER = ("nll", "ece", "missed", "false_alarms")


def contributions(objects: pa.Table) -> np.ndarray:
    """What each object adds to numerator and denominator of each metric.   [objects, metrics, 2]"""
    views = _numbers(objects, "truth_views")
    known = views > 0
    told = ~objects["outside"].is_null().to_numpy()
    outside = objects["outside"].fill_null(False).to_numpy()
    switched = objects["switched"].fill_null(False).to_numpy()
    warned = pc.list_value_length(objects["reasons"]).to_numpy() > 0
    found = np.array([OUT_OF_DISTRIBUTION in reasons for reasons in objects["reasons"].to_pylist()], bool)
    inside = told & ~outside & ~switched
    every = np.ones(len(objects))
    pairs = {
        "accuracy": (_numbers(objects, "accuracy") * views, views),
        "nll": (_numbers(objects, "nll") * views, views),
        "last_accuracy": (objects["right"].fill_null(False).to_numpy() & known, known),
        "missed": (outside & ~found, outside),
        "false_alarms": (inside & warned, inside),
        "warned": (warned, every),
        "changes": (_numbers(objects, "changes"), every),
        "entropy": (_numbers(objects, "entropy"), every),
    }
    return np.stack([np.stack(pairs[name], axis=-1) for name in METRICS], axis=1).astype(float)


def ratio(numerator: float, denominator: float) -> float | None:
    """None where nothing counts."""
    return numerator / denominator if denominator else None


def ece_of_bins(bins: np.ndarray) -> float | None:
    """From views, sum of confidences and hits by bin.   [bins, 3]"""
    count, held, hits = bins.T
    if not count.any():
        return None
    with np.errstate(invalid="ignore"):
        return ece_of(Reliability(count, held / count, hits / count))


def _numbers(objects: pa.Table, name: str) -> np.ndarray:
    """A column, 0 for null."""
    return np.asarray(objects[name].fill_null(0).to_numpy(), float)
