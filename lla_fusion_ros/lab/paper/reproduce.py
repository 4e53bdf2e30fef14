"""One experiment from images to tables and figures; our tables 1 and 2 stand beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lla_fusion_ros.lab.paper.experiments import experiment, load_images
from lla_fusion_ros.lab.paper.methods import Method, fit_methods
from lla_fusion_ros.lab.paper.network_outputs import Progress, Recorded, record
from lla_fusion_ros.types.metrics import accuracy, aupr, auroc, brier, ece, ece_paper, nll
from lla_fusion_ros.types.pmf import entropy

# The paper's tables as printed, but accuracy as a fraction; `loglike` is in thousands, positive, and its ECE
# divides each bin by its own size (metrics.ece_paper).
TABLE_1: dict[str, dict[str, dict[str, float]]] = {
    "mnist": {
        "temperature_scaling": {"accuracy": 0.92, "loglike": 7.83, "brier": 0.123, "ece_paper": 2.85},
        "deep_ensemble": {"accuracy": 0.95, "loglike": 7.94, "brier": 0.080, "ece_paper": 2.29},
        "lla": {"accuracy": 0.92, "loglike": 7.81, "brier": 0.125, "ece_paper": 1.33},
        "fusion": {"accuracy": 0.94, "loglike": 7.89, "brier": 0.103, "ece_paper": 1.82},
        "ella": {"accuracy": 0.93, "loglike": 8.37, "brier": 0.071, "ece_paper": 1.06},
    },
    "cifar10": {
        "temperature_scaling": {"accuracy": 0.82, "loglike": 7.45, "brier": 0.246, "ece_paper": 1.42},
        "deep_ensemble": {"accuracy": 0.86, "loglike": 7.87, "brier": 0.197, "ece_paper": 1.19},
        "lla": {"accuracy": 0.82, "loglike": 7.74, "brier": 0.255, "ece_paper": 1.08},
        "fusion": {"accuracy": 0.86, "loglike": 8.04, "brier": 0.197, "ece_paper": 0.67},
        "ella": {"accuracy": 0.87, "loglike": 8.20, "brier": 0.191, "ece_paper": 0.63},
    },
}

# MNIST in, Fashion-MNIST out; delta_entropy in thousands of nats, summed over the test images.
TABLE_2: dict[str, dict[str, float]] = {
    "temperature_scaling": {"delta_entropy": -6.36, "auroc": 0.82, "aupr": 0.70},
    "deep_ensemble": {"delta_entropy": -13.12, "auroc": 0.94, "aupr": 0.91},
    "lla": {"delta_entropy": -11.23, "auroc": 0.91, "aupr": 0.91},
    "fusion": {"delta_entropy": -13.83, "auroc": 0.95, "aupr": 0.96},
    "ella": {"delta_entropy": -5.42, "auroc": 0.87, "aupr": 0.83},
}


def reproduce(
    name: str, root: Path, seeds: Sequence[int], cache: Path, progress: Progress, plots: Path | None = None
) -> dict[str, Any]:
    """The document of results; figures of the first seed go to `plots`."""
    setup = experiment(name)
    progress(f"loading {setup.dataset}", 0, 1)
    train, class_names = load_images(setup.dataset, root, "train")
    test, _ = load_images(setup.dataset, root, "test")
    outside = None if setup.outside is None else load_images(setup.outside, root, "test")[0]
    scores: dict[int, dict[str, dict[str, float]]] = {}
    chosen: dict[int, dict[str, Any]] = {}
    methods: dict[str, Method] = {}
    for number, seed in enumerate(seeds):
        recorded = record(setup, train, test, outside, seed, cache, progress)
        progress(f"methods of seed {seed}", number, len(seeds))
        methods = fit_methods(recorded)
        scores[seed] = seed_scores(recorded, methods)
        chosen[seed] = {key: method.chosen for key, method in methods.items()}
        if plots is not None and number == 0:
            _figures(name, recorded, methods, class_names, plots)
    return {
        "experiment": name,
        "networks": setup.networks,
        "epochs": setup.epochs,
        "seeds": list(seeds),
        "architecture": setup.architecture,
        "training_images": len(train.labels) - setup.validation,
        "validation_images": setup.validation,
        "test_images": len(test.labels),
        "table": summary(name, scores, methods),
        "chosen": chosen,
        "scores": scores,
    }


def _figures(
    name: str, recorded: Recorded, methods: dict[str, Method], class_names: Sequence[str], plots: Path
) -> None:
    from lla_fusion_ros.lab.paper.figures import draw_clouds, draw_sequence
    from lla_fusion_ros.lab.plots import entropy_histograms

    posterior = recorded.posterior.with_temperature(1.0)
    if recorded.outside is not None:
        five = [method for method in methods.values() if method.printed is not None]
        entropies = {
            method.title.split(" (")[0]: (
                entropy(method.predict(recorded.test)[0]),
                entropy(method.predict(recorded.outside)[0]),
            )
            for method in five
        }
        entropy_histograms(entropies, plots / f"evidence-{name}-entropy.png", ("in", "out"))
        return
    draw_sequence(posterior, recorded.test, 0, class_names, plots / f"evidence-{name}-sequence.png")
    draw_clouds(posterior, recorded.test, class_names, plots / f"evidence-{name}-cloud.png")


def seed_scores(recorded: Recorded, methods: dict[str, Method]) -> dict[str, dict[str, float]]:
    """Every score of every method on one ensemble; a single network's scores are the mean over members."""
    scores = {}
    for key, method in methods.items():
        inside = method.predict(recorded.test)
        own = _mean([_accuracy_and_calibration(pmf, recorded.test.labels) for pmf in inside])
        if recorded.outside is not None:
            outside = method.predict(recorded.outside)
            own |= _mean([_detection(a, b) for a, b in zip(inside, outside, strict=True)])
        scores[key] = own
    return scores


def _accuracy_and_calibration(pmf: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """`mass` is the sum over test images of the probability of the true class, in thousands.

    The paper's "log-likelihood" rows are positive, grow with quality and stay below the 10 thousand test
    images: a log-likelihood cannot do that, this sum can. `confidence` is the mean probability of the first
    class: below the accuracy where a method is too cautious.
    """
    return {
        "accuracy": accuracy(pmf, labels),
        "confidence": float(pmf.max(axis=1).mean()),
        "nll": nll(pmf, labels),
        "mass": float(pmf[np.arange(len(labels)), labels].sum() / 1000),
        "brier": brier(pmf, labels),
        "ece": ece(pmf, labels),
        "ece_paper": ece_paper(pmf, labels),
    }


def _detection(inside: np.ndarray, outside: np.ndarray) -> dict[str, float]:
    """As in the paper: detect what is *in* distribution, by low entropy; Delta_E summed, in thousands."""
    score = -np.concatenate([entropy(inside), entropy(outside)])
    known = np.r_[np.ones(len(inside), bool), np.zeros(len(outside), bool)]
    return {
        "delta_entropy": float((entropy(inside).sum() - entropy(outside).sum()) / 1000),
        "auroc": auroc(score, known),
        "aupr": aupr(score, known),
    }


def _mean(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def summary(
    dataset: str, seeds: dict[int, dict[str, dict[str, float]]], methods: dict[str, Method]
) -> list[dict[str, Any]]:
    """One record per method: of each score the mean, the standard deviation over seeds, the paper's value."""
    records = []
    for key, method in methods.items():
        record: dict[str, Any] = {"method": key, "title": method.title, "scores": {}}
        for score in next(iter(seeds.values()))[key]:
            values = [own[key][score] for own in seeds.values()]
            spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
            record["scores"][score] = {
                "mean": float(np.mean(values)),
                "spread": spread,
                "paper": _printed(dataset, method.printed, score),
            }
        records.append(record)
    return records


def _printed(dataset: str, key: str | None, score: str) -> float | None:
    if key is None:
        return None
    row = dict(TABLE_1.get(dataset, {}).get(key, {}))
    row["mass"] = row.pop("loglike", None)  # type: ignore[arg-type]
    if dataset == "mnist":
        row |= TABLE_2[key]
    return row.get(score)
