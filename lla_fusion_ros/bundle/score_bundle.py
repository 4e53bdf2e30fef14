"""A bundle without networks: fuses the scores that detections carry, with fusers that need pmfs only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lla_fusion_ros.bundle.bundle import SCORES, Bundle, make_bundle
from lla_fusion_ros.bundle.meta import MOST_CLASSES, BundleMeta
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.warnings.result import NOTHING_THERE

PLACES = 100  # most classes that messages name where nobody else does
# A view of scores has no features: one that is always 0, and the 1 of the bias.
NO_FEATURES = (0.0, 1.0)


def score_bundle(class_names: Sequence[str] = (), is_open: bool = False) -> Bundle:
    """Uncalibrated, for these classes; open, or without any: messages name further ones as they come."""
    meta = score_meta(tuple(class_names), {"name": SCORES, "open": is_open or not class_names})
    return replace(bundle_of(meta), source=SCORES)


def with_class_names(bundle: Bundle, text: str) -> Bundle:
    """An open bundle with the classes that a user lists: names separated by commas, or a file with one a
    line."""
    if not text:
        return bundle
    if not bundle.is_open:
        raise InputError(
            f"setting 'class_names' is for the model '{SCORES}': '{bundle.source}' has its own names"
        )
    names = text.split(",")
    if len(names) == 1:
        try:
            names = Path(text).expanduser().read_text(encoding="utf8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"setting 'class_names' is '{text}': neither names separated by commas nor a file that can "
                f"be read ({error})"
            ) from None
    names = [name.strip() for name in names if name.strip()]
    if not names or len(set(names)) < len(names) or len(names) >= MOST_CLASSES:
        raise InputError(f"setting 'class_names' lists {len(names)} classes, {len(set(names))} different")
    return score_bundle(names)


def score_meta(class_names: tuple[str, ...], architecture: dict[str, object]) -> BundleMeta:
    """Of these classes and that nothing is there.

    `architecture` may list under "said" what messages call the classes, where it is not their names.
    """
    if NOTHING_THERE in class_names:
        raise InputError(f"'{NOTHING_THERE}' is no name for a class: it is what no class claims")
    return BundleMeta(
        architecture=architecture,
        networks=1,
        class_names=(*class_names, NOTHING_THERE),
        reserved=(NOTHING_THERE,),
        input_size=4,  # there are no crops; the least there is
        crop_margin=0.0,
        normalisation={},
        prior_precision=1.0,
        posterior_temperature=0.0,
        default_fuser="pool",
    )


def bundle_of(meta: BundleMeta, confusion: np.ndarray | None = None) -> Bundle:
    """Without any warnings."""
    return make_bundle(meta, score_tensors(meta, confusion), no_posterior(len(meta.class_names)))


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
