"""Tracks of labelled images: loaders, splits by track, crops, degradations, synthetic outliers."""

from lla_fusion_ros.datasets.cut import cut
from lla_fusion_ros.datasets.degrade import REGIMES, Regime, augmentation_plan, degrade
from lla_fusion_ros.datasets.load import dataset_names, load_dataset, load_part_of_dataset
from lla_fusion_ros.datasets.outliers import OUTLIER_KINDS, outlier_tracks
from lla_fusion_ros.datasets.plan import Plan, apply_plan
from lla_fusion_ros.datasets.split import Splits, recorded_split, split_tracks, thinned
from lla_fusion_ros.datasets.types import CropSet, Frame, Track, TrackSet

__all__ = [
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
    "cut",
    "dataset_names",
    "degrade",
    "load_dataset",
    "load_part_of_dataset",
    "outlier_tracks",
    "recorded_split",
    "split_tracks",
    "thinned",
]
