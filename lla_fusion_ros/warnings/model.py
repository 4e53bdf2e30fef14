"""The fitted part of the warnings: frozen, stored in a bundle as arrays and JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from lla_fusion_ros.bounds import bounded
from lla_fusion_ros.errors import BundleError
from lla_fusion_ros.fusion.measure import posterior_under
from lla_fusion_ros.once import once
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.products import last_axis_mean, row_norms
from lla_fusion_ros.warnings import scores
from lla_fusion_ros.warnings.alarm import AlarmTable
from lla_fusion_ros.warnings.sums import TrackSums

# Prior precision of the Laplace scores. The prior that calibrates single views may be so strong that the
# variance only measures the length of the features; under a weak one it measures the distance from the
# training views of a class, which is what tells a stranger.
SCORE_PRIOR = 1.0
SCORES = (
    "entropy",
    "information",
    "energy",
    "neighbours",
    "mahalanobis",
    "residual",
    "disagreement",
    "view_entropy",
    "feature_norm",
    "view_norm",
    "top_logit",
    "variance",
    "length",
)
# Scores that enter as logarithms, and what is added to each before.
FLOOR_OF = {
    "entropy": 1e-4,
    "information": 1e-6,
    "neighbours": 1e-4,
    "mahalanobis": 1e-6,
    "residual": 1e-6,
    "disagreement": 1e-4,
    "view_entropy": 1e-4,
    "variance": 1e-9,
    "length": 0.0,
}
LOGARITHMIC = np.array([name in FLOOR_OF for name in SCORES])
FLOORS = np.array([FLOOR_OF.get(name, 0.0) for name in SCORES])


@dataclass(frozen=True)  # no slots: `once` keeps its value in the instance
class FeatureSpace:
    """Where the features of known objects lie (k classes, r directions, b remembered tracks).

    Attributes:
        bank: unit features of known tracks.                                [b, networks * d]
        whitening: of the spread within a class.                             [networks, d, d]
        centres: whitened class means.                                       [networks, k, d]
        middle: mean feature.                                                   [networks, d]
        residual: directions that known objects hardly use.                  [networks, d, r]
        projection: whitened by the spread within tracks, best separating classes.  [networks * d, r]
    """

    bank: np.ndarray
    whitening: np.ndarray
    centres: np.ndarray
    middle: np.ndarray
    residual: np.ndarray
    projection: np.ndarray

    @once
    def centre_norms(self) -> np.ndarray:
        """Squared lengths of the centres.  [networks, k]"""
        return row_norms(self.centres)

    def project(self, features: np.ndarray) -> np.ndarray:
        """[t, networks, D] -> [t, r]"""
        projection = self.projection_with_bias(features.shape[1])
        return features.reshape(len(features), len(projection)) @ projection  # also where there are none

    def projection_with_bias(self, networks: int) -> np.ndarray:
        """The projection with rows of zeros for the biases, so that features need not be cut out.

        [networks * D, r], in double precision
        """
        width, directions = len(self.projection) // networks, self.projection.shape[1]
        rows = np.zeros((networks, width + 1, directions))
        rows[:, :-1] = self.projection.reshape(networks, width, directions)
        return rows.reshape(-1, directions)


@dataclass(frozen=True, slots=True)
class WarningModel:
    """A logistic combination of the scores in SCORES, and the thresholds of all three warnings.

    Attributes:
        space: what the feature scores compare with.
        center, scale, coefficients, intercept: logit = intercept + sum coefficients (score - center) / scale.
        feature_weight: weight of the feature change in the identity-switch statistic.
        camera_span: seconds within which views of several cameras count as "at one time".
        ood, switch, camera: thresholds by false-alarm rate per track.
        quality: what was measured when fitting, for the record (AUROC on synthetic outliers and the like).
    """

    space: FeatureSpace
    center: np.ndarray
    scale: np.ndarray
    coefficients: np.ndarray
    intercept: float
    feature_weight: float
    camera_span: float
    ood: AlarmTable
    switch: AlarmTable
    camera: AlarmTable
    quality: dict[str, float]

    def ood_score(self, columns: np.ndarray) -> np.ndarray:
        """Log-odds of being an outlier; large is alarming.  [t, scores] -> [t]"""
        standard = bounded((columns - self.center) / self.scale, 8.0)
        return self.intercept + standard.dot(self.coefficients)

    def check(self, networks: int, features: int) -> None:
        """Refuse a model whose parts do not fit each other or the ensemble, before it meets a frame."""
        width, space = features - 1, self.space
        shapes = {
            "bank": (len(space.bank), networks * width),
            "whitening": (networks, width, width),
            "centres": (networks, *space.centres.shape[1:2], width),
            "middle": (networks, width),
            "residual": (networks, width, *space.residual.shape[2:3]),
            "projection": (networks * width, *space.projection.shape[1:2]),
            **dict.fromkeys(("center", "scale", "coefficients"), (len(SCORES),)),
        }
        for name, shape in shapes.items():
            array = getattr(space, name) if hasattr(space, name) else getattr(self, name)
            if array.shape != shape or array.size == 0 and name != "residual":
                raise BundleError(f"the warning model's '{name}' has shape {array.shape}, expected {shape}")
            if not np.isfinite(array).all():
                raise BundleError(f"the warning model's '{name}' holds NaN or infinity")
        numbers = np.array([self.intercept, self.feature_weight, self.camera_span])
        if not (np.isfinite(numbers).all() and (self.scale > 0).all() and (numbers[1:] >= 0).all()):
            raise BundleError("the warning model holds a number that is not finite or not positive")
        for table in (self.ood, self.switch, self.camera):
            table.check()

    def to_parts(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and JSON, for a bundle."""
        arrays = {f.name: getattr(self.space, f.name) for f in fields(FeatureSpace)}
        arrays["bank"] = self.space.bank.astype(np.float16)  # by far the largest part
        record = {
            "scores": list(SCORES),
            "center": self.center.tolist(),
            "scale": self.scale.tolist(),
            "coefficients": self.coefficients.tolist(),
            "intercept": self.intercept,
            "feature_weight": self.feature_weight,
            "camera_span": self.camera_span,
            "ood": asdict(self.ood),
            "switch": asdict(self.switch),
            "camera": asdict(self.camera),
            "quality": self.quality,
        }
        return arrays, record

    @classmethod
    def from_parts(cls, arrays: dict[str, np.ndarray], record: dict[str, Any]) -> WarningModel:
        """What `to_parts` gave; a record of another kind is refused."""
        try:
            if tuple(record["scores"]) != SCORES:
                raise BundleError(
                    f"the warning model uses the scores {record['scores']}, this version knows "
                    f"{list(SCORES)}; make the bundle anew"
                )
            space = FeatureSpace(**{f.name: arrays[f.name].astype(np.float32) for f in fields(FeatureSpace)})
            return cls(
                space=space,
                center=np.asarray(record["center"], float),
                scale=np.asarray(record["scale"], float),
                coefficients=np.asarray(record["coefficients"], float),
                intercept=float(record["intercept"]),
                feature_weight=float(record["feature_weight"]),
                camera_span=float(record["camera_span"]),
                ood=AlarmTable(tuple(record["ood"]["thresholds"]), record["ood"]["tracks"]),
                switch=AlarmTable(tuple(record["switch"]["thresholds"]), record["switch"]["tracks"]),
                camera=AlarmTable(tuple(record["camera"]["thresholds"]), record["camera"]["tracks"]),
                quality=dict(record["quality"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise BundleError(f"the warning model is incomplete: {error!r}") from error


def score_columns(
    space: FeatureSpace, posterior: EnsemblePosterior, means: TrackSums
) -> tuple[np.ndarray, np.ndarray]:
    """All scores of SCORES, and the Laplace mutual information in nats.  t tracks -> [t, scores], [t]"""
    variance = scores.fused_variance(posterior_under(posterior, SCORE_PRIOR), means.features)
    information = scores.laplace_information(means.logits, variance)
    top = means.logits.argmax(axis=1)
    plain = scores.plain_features(means.features)
    norms = scores.lengths(plain)
    columns = {
        "entropy": scores.mean_pmf_entropy(means.pmf),
        "information": information,
        "energy": -means.signs[:, 1],
        "neighbours": scores.neighbour_distance(space.bank, scores.unit_features(plain, norms)),
        "mahalanobis": scores.class_distance(plain, space.whitening, space.centres, space.centre_norms),
        "residual": scores.residual_norm(plain, space.middle, space.residual),
        "disagreement": means.signs[:, 3],
        "view_entropy": means.signs[:, 0],
        "feature_norm": last_axis_mean(np.log(np.maximum(norms, 1e-6)).astype(np.float64)),
        "view_norm": means.signs[:, 2],
        "top_logit": -means.logits.max(axis=1),
        "variance": variance[np.arange(len(top)), top],
        "length": np.maximum(means.count, 1.0),
    }
    table = np.empty((len(top), len(SCORES)))
    for place, name in enumerate(SCORES):
        table[:, place] = columns[name]
    table += FLOORS
    np.log(table, out=table, where=LOGARITHMIC)
    return table, information
