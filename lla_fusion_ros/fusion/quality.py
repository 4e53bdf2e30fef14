"""Fusers that weigh a view by its quality features, which come from the view alone."""

from __future__ import annotations

from typing import ClassVar, TypeVar

import numpy as np

from lla_fusion_ros.fusion.along import views_of
from lla_fusion_ros.fusion.base import Values
from lla_fusion_ros.fusion.learn import LearnedFuser
from lla_fusion_ros.fusion.measure import QUALITY_FEATURES
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_views import TrackViews

BY_ENTROPY = tuple(-1.0 if name == "entropy" else 0.0 for name in QUALITY_FEATURES)  # weights exp(-H)
LARGEST_LOG_WEIGHT = 20.0  # one view never counts more than e^20 or less than e^-20 of a standard one
RIDGE = 1e-3  # on standardised coefficients: features that say the same share the weight, none explodes
LARGEST_TRUST = 3.0  # no view counts as more than e^3 times as sure, or as unsure, as a standard one
FARTHEST = 8.0  # in standard deviations: one absurd view must not steer a fit

Own = TypeVar("Own", bound="QualityFuser")


class QualityFuser(LearnedFuser):
    """A fuser that weighs views by their quality features, standardised with `center` and `scale`."""

    vectors: ClassVar[tuple[str, ...]] = ("center", "scale")

    def __init__(self, posterior: EnsemblePosterior, values: Values | None = None, window: int = 30) -> None:
        super().__init__(posterior, values, window)
        count = len(QUALITY_FEATURES)
        self.value.setdefault("center", np.zeros(count))
        self.value.setdefault("scale", np.ones(count))
        for key in self.vectors:
            if key in self.value and len(self.value[key]) != count:
                raise InputError(
                    f"value '{key}' of fuser '{self.name}' has {len(self.value[key])} entries, not {count}"
                )
        if not (self.value["scale"] > 0).all():
            raise InputError(f"value 'scale' of fuser '{self.name}' must be positive")

    @classmethod
    def standardised(
        cls: type[Own], posterior: EnsemblePosterior, tracks: TrackViews, **values: float
    ) -> tuple[Own, tuple[np.ndarray, ...]]:
        """A fuser with the `center` and `scale` of the views of these tracks, and its inputs for `learn`."""
        views = views_of(posterior, tracks)
        features, *others = cls(posterior, values).inputs(views)
        real = features[tracks.real.ravel()]
        center, scale = real.mean(axis=0), real.std(axis=0)
        scale[scale < 1e-6] = 1.0  # a feature that is always the same tells nothing
        near = features.clip(center - FARTHEST * scale, center + FARTHEST * scale)
        fuser = cls(posterior, {**values, "center": center.tolist(), "scale": scale.tolist()})
        return fuser, (near, *others)
