"""A view is one crop seen by one network; it is fully described by its logits and its features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.types.errors import InputError

# What is measured of a crop, whatever it shows; see `images.quality`.
QUALITIES = ("brightness", "contrast", "sharpness", "grain", "colour", "colour_sharpness", "clipped", "black")


@dataclass(frozen=True, slots=True)
class Views:
    """One crop of each of several tracks, seen by every network of the ensemble.

    Attributes:
        logits: g = W phi before the softmax.                        [tracks, networks, classes]
        features: last hidden layer with a 1 appended for the bias.  [tracks, networks, features]
        quality: of the crops (`images.quality`), where they are known.       [tracks, qualities]
    """

    logits: np.ndarray
    features: np.ndarray
    quality: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.logits)

    @property
    def networks(self) -> int:
        return self.logits.shape[1]

    @property
    def classes(self) -> int:
        return self.logits.shape[2]

    def take(self, rows: np.ndarray | slice) -> Views:
        """The views of some of the tracks."""
        return Views(
            self.logits[rows], self.features[rows], None if self.quality is None else self.quality[rows]
        )

    def check(self, networks: int, classes: int, features: int) -> None:
        """Refuse views that do not fit the ensemble or are not finite; the message names the cause."""
        for name, array, last in (("logits", self.logits, classes), ("features", self.features, features)):
            if array.ndim != 3 or array.shape[1:] != (networks, last):
                raise InputError(
                    f"views.{name} has shape {array.shape}, expected [tracks, {networks}, {last}]"
                )
            if not np.isfinite(array).all():
                raise InputError(f"views.{name} contains NaN or infinity")
        if self.quality is not None and not (
            self.quality.shape == (len(self), len(QUALITIES)) and np.isfinite(self.quality).all()
        ):
            raise InputError(
                f"views.quality has shape {self.quality.shape}, expected [tracks, {len(QUALITIES)}] finite"
            )
        if len(self.logits) != len(self.features):
            raise InputError(
                f"views has {len(self.logits)} rows of logits but {len(self.features)} of features"
            )
