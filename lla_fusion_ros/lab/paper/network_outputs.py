"""Train the networks of an experiment and keep what they say: all else is computed from that in seconds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from lla_fusion_ros.lab.evaluation.cached_views import save_arrays
from lla_fusion_ros.lab.paper.experiments import Experiment, Images, load_or_train
from lla_fusion_ros.networks import Ensemble
from lla_fusion_ros.posterior.cross import CrossSum
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.posterior.fit import DiagonalSum

_PRIOR = 1.0  # of the stored factors; every method chooses its own with `with_prior`
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Outputs:
    """What the networks say: logits [n, networks, classes], features [n, networks, D], labels [n]."""

    logits: np.ndarray
    features: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True, slots=True)
class Recorded:
    """All of one seed: outputs on validation, test and outside images, and the posterior of the last layers.

    `joint` has the covariance between networks too; its blocks share the ensemble's mean pmf.
    """

    validation: Outputs
    test: Outputs
    outside: Outputs | None
    posterior: EnsemblePosterior
    joint: EnsemblePosterior


Progress = Callable[[str, int, int], None]  # what, done, of how many


def record(
    experiment: Experiment,
    train: Images,
    test: Images,
    outside: Images | None,
    seed: int,
    cache: Path,
    progress: Progress,
) -> Recorded:
    """Outputs of the ensemble of that seed; trains what the cache does not hold yet."""
    kept = train.part(slice(len(train.labels) - experiment.validation, None))
    used = train.part(slice(0, len(train.labels) - experiment.validation))
    folder = cache / f"{experiment.dataset}-{_key(experiment, train, test, outside)}" / f"seed{seed}"
    file = folder / "outputs.npz"
    if not file.is_file():
        members = [
            load_or_train(experiment, used.images, used.labels, (seed, member), folder, progress)
            for member in range(experiment.networks)
        ]
        ensemble = Ensemble(members)
        arrays: dict[str, np.ndarray] = {}
        for name, part in (("validation", kept), ("test", test), ("outside", outside)):
            if part is not None:
                arrays |= _outputs(ensemble, experiment, part, name)
        arrays |= _curvature(ensemble, experiment, used, progress)
        save_arrays(file, arrays)
    return _load(file)


def _key(experiment: Experiment, *parts: Images | None) -> str:
    """Changes with whatever changes the outputs, so that a cache is never taken for another's."""
    digest = hashlib.sha256(json.dumps(asdict(experiment), sort_keys=True).encode())
    for part in parts:
        if part is not None:
            digest.update(np.ascontiguousarray(part.labels, np.int64).tobytes())
            digest.update(np.ascontiguousarray(part.images[::101]).tobytes())
    return digest.hexdigest()[:12]


def _batches(experiment: Experiment, images: np.ndarray) -> list[torch.Tensor]:
    return [
        experiment.normalisation(torch.from_numpy(np.ascontiguousarray(images[start : start + _BATCH])))
        for start in range(0, len(images), _BATCH)
    ]


def _outputs(ensemble: Ensemble, experiment: Experiment, part: Images, name: str) -> dict[str, np.ndarray]:
    logits, features = zip(*(ensemble(batch) for batch in _batches(experiment, part.images)), strict=True)
    return {
        f"{name}_logits": torch.cat(logits).numpy(),
        f"{name}_features": torch.cat(features).numpy(),
        f"{name}_labels": np.asarray(part.labels, np.int64),
    }


def _curvature(
    ensemble: Ensemble, experiment: Experiment, used: Images, progress: Progress
) -> dict[str, np.ndarray]:
    """The data terms of the posterior (eq. 16), without and with cross-network blocks."""
    shape = (ensemble.networks, ensemble.classes, ensemble.features)
    own, joint = DiagonalSum(*shape), CrossSum(*shape)
    for start in range(0, len(used.images), 10 * _BATCH):
        outputs = _outputs(ensemble, experiment, used.part(slice(start, start + 10 * _BATCH)), "part")
        logits, features = (outputs[f"part_{key}"].astype(np.float64) for key in ("logits", "features"))
        own.add(logits, features)
        joint.add(logits, features)
        progress("curvature", min(start + 10 * _BATCH, len(used.images)), len(used.images))
    posterior, with_cross = own.finish(_PRIOR), joint.finish(_PRIOR)
    assert with_cross.cross is not None
    return {
        "factors": posterior.factors,
        "joint_factors": with_cross.factors,
        "joint_cross": with_cross.cross,
    }


def _load(file: Path) -> Recorded:
    with np.load(file, allow_pickle=False) as stored:
        arrays = dict(stored)

    def outputs(name: str) -> Outputs:
        return Outputs(*(arrays[f"{name}_{key}"] for key in ("logits", "features", "labels")))

    return Recorded(
        validation=outputs("validation"),
        test=outputs("test"),
        outside=outputs("outside") if "outside_logits" in arrays else None,
        posterior=EnsemblePosterior(arrays["factors"], _PRIOR),
        joint=EnsemblePosterior(arrays["joint_factors"], _PRIOR, cross=arrays["joint_cross"]),
    )
