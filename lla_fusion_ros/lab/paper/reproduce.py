"""One experiment from images to tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lla_fusion_ros.lab.paper.experiments import experiment, load_images
from lla_fusion_ros.lab.paper.methods import Method, fit_methods
from lla_fusion_ros.lab.paper.network_outputs import Progress, Recorded, record
from lla_fusion_ros.lab.paper.tables import seed_scores, summary


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
    from lla_fusion_ros.lab.paper.figures import (
        cloud_example,
        clouds,
        most_agreed,
        most_divided,
        sequence,
        sequence_example,
    )
    from lla_fusion_ros.lab.plots import entropy_histograms
    from lla_fusion_ros.types.pmf import entropy

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
    example = sequence_example(posterior, recorded.test, label=0)
    sequence(example, class_names, plots / f"evidence-{name}-sequence.png")
    pictures = [
        ("the networks agree", cloud_example(posterior, recorded.test, most_agreed(recorded.test))),
        ("the networks are divided", cloud_example(posterior, recorded.test, most_divided(recorded.test))),
    ]
    clouds(pictures, class_names, plots / f"evidence-{name}-cloud.png")
