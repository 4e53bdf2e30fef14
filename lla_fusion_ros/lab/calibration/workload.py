"""How long the stages of calibration take, roughly: so that the time left is told before they begin."""

from __future__ import annotations

from dataclasses import dataclass

from lla_fusion_ros.lab.calibration.collect import LONGEST
from lla_fusion_ros.lab.calibration.warning_tracks import warning_crops
from lla_fusion_ros.lab.datasets import FITTED_REGIMES, REGIMES, Splits, TrackSet

TEMPERATURES, POSTERIOR, FUSERS = "temperature scaling", "Laplace posterior", "fusers"
CHOICE, WARNINGS, SCORES = "choosing the default fuser", "warning models", "scores"

# Seconds of one CPU core, measured on small networks; the first training steps replace those of a crop.
CROP_SECONDS = 2e-4  # one crop through one network
FIT_SECONDS = 2.0  # of fitting every fuser once, whatever the data
LOGIT_SECONDS = 1.1e-5  # and for every logit of the validation views
TRAINED_CROP = 6.0  # times as long as classifying one


@dataclass(frozen=True, slots=True)
class StageWork:
    """Crops through each network, and how often all fusers are fitted."""

    crops: int = 0
    fits: float = 0.0


@dataclass(frozen=True, slots=True)
class Workload:
    """The work of each stage, in order.

    Attributes:
        logits: of all validation views, what a fit goes through.
    """

    stages: dict[str, StageWork]
    networks: int
    logits: int

    def seconds(self, crop_seconds: float = CROP_SECONDS) -> dict[str, float]:
        """Of each stage, given the time of one crop in one network."""
        fit = FIT_SECONDS + LOGIT_SECONDS * self.logits
        return {
            name: work.crops * self.networks * crop_seconds + work.fits * fit
            for name, work in self.stages.items()
        }


def workload(splits: Splits, networks: int, draws: int, outliers: int, test: bool, folds: float) -> Workload:
    """What `calibrated_bundle` will do with these splits; `folds` fits of every fuser choose the default."""
    regimes, fitted = len(REGIMES), len(FITTED_REGIMES)
    train, validation, scored = (_crops(part) for part in (splits.train, splits.validation, splits.test))
    return Workload(
        {
            TEMPERATURES: StageWork(crops=fitted * draws * validation),
            POSTERIOR: StageWork(crops=train),
            FUSERS: StageWork(fits=1),
            CHOICE: StageWork(fits=folds),
            WARNINGS: StageWork(crops=warning_crops(splits.validation, outliers) + train),
            SCORES: StageWork(crops=regimes * scored if test else 0),
        },
        networks,
        fitted * draws * validation * networks * len(splits.train.class_names),
    )


def _crops(part: TrackSet) -> int:
    return sum(min(len(track.frames), LONGEST) for track in part.tracks)
