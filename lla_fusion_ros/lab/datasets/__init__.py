"""Data sets: folders of labelled images (or the sign world) in; tracks, splits, crops and outliers out.

`load` is the door to all of them. Imports `types`, `images` and `signworld`.
"""

from lla_fusion_ros.lab.datasets.crops import (
    APPROACH,
    FITTED_REGIMES,
    REGIMES,
    Regime,
    augmentation_plan,
    border_of,
    cut,
    degrade,
)
from lla_fusion_ros.lab.datasets.load import dataset_names, load_dataset
from lla_fusion_ros.lab.datasets.outliers import OUTLIER_KINDS, outlier_tracks
from lla_fusion_ros.lab.datasets.plan import Plan, apply_plan
from lla_fusion_ros.lab.datasets.split import Splits, recorded_split, split_tracks, thinned
from lla_fusion_ros.types.track_set import CropSet, Frame, Track, TrackSet

__all__ = [
    "APPROACH",
    "FITTED_REGIMES",
    "OUTLIER_KINDS",
    "REGIMES",
    "CropSet",
    "Frame",
    "Plan",
    "Regime",
    "Splits",
    "Track",
    "TrackSet",
    "apply_plan",
    "augmentation_plan",
    "border_of",
    "cut",
    "dataset_names",
    "degrade",
    "load_dataset",
    "outlier_tracks",
    "recorded_split",
    "split_tracks",
    "thinned",
]
