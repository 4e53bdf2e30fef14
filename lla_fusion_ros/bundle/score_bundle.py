"""A bundle without networks: fuses the scores that detections carry, with fusers that need pmfs only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lla_fusion_ros.bundle.bundle import SCORES, Bundle, make_bundle
from lla_fusion_ros.bundle.meta import BundleMeta
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior

LAPSE = 0.03  # how wrong a detector's sure score can be
PLACES = 100  # classes that an uncalibrated bundle has room for, named as messages name them
_UNSEEN = "unseen "
# A view of scores has no features: one that is always 0, and the 1 of the bias.
NO_FEATURES = (0.0, 1.0)


def score_bundle(said: Sequence[str] = (), places: int = PLACES) -> Bundle:
    """Uncalibrated, for classes as messages call them; the places that are left are named by messages."""
    free = (f"{_UNSEEN}{number}" for number in range(len(said), places))
    meta = score_meta((*said, *free), {"name": SCORES})
    bundle = make_bundle(meta, score_tensors(meta), no_posterior(len(meta.class_names)))
    return Bundle(bundle.meta, bundle.tensors, source=SCORES)


def is_free(name: str) -> bool:
    """Whether this place of an uncalibrated bundle has no class yet."""
    return name.startswith(_UNSEEN)


def score_meta(class_names: tuple[str, ...], architecture: dict[str, object]) -> BundleMeta:
    """`architecture` may list under "said" what messages call the classes, where it is not their names."""
    return BundleMeta(
        architecture=architecture,
        networks=1,
        class_names=class_names,
        input_size=4,  # there are no crops; the least there is
        crop_margin=0.0,
        normalisation={},
        prior_precision=1.0,
        posterior_temperature=0.0,
        default_fuser="pool",
        changes={"lapse": LAPSE},
    )


def score_tensors(meta: BundleMeta, confusion: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """What stands in the place of networks, and what is mistaken for what where it was learned."""
    classes = len(meta.class_names)
    tensors = {
        "network.0.head.weight": np.zeros((classes, 1), np.float32),
        "network.0.head.bias": np.zeros(classes, np.float32),
    }
    return tensors if confusion is None else {**tensors, "scores.confusion": confusion.astype(np.float32)}


def no_posterior(classes: int) -> EnsemblePosterior:
    """Of one network that says nothing about its features."""
    width = len(NO_FEATURES)
    return EnsemblePosterior(np.broadcast_to(np.eye(width), (1, classes, width, width)).copy(), 1.0, 0.0)
