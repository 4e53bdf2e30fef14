"""The fitted part of the warnings: frozen, stored in a bundle as arrays and JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from lla_fusion_ros.errors import BundleError
from lla_fusion_ros.fusion.measure import posterior_under
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
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


@dataclass(frozen=True, slots=True)
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

    def project(self, features: np.ndarray) -> np.ndarray:
        """[t, networks, D] -> [t, r]"""
        return features[..., :-1].reshape(len(features), len(self.projection)) @ self.projection


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
        standard = np.clip((columns - self.center) / self.scale, -8.0, 8.0)
        return self.intercept + standard @ self.coefficients

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
        except (KeyError, TypeError, ValueError) as error:
            raise BundleError(f"the warning model is incomplete: {error!r}") from error


def score_columns(
    space: FeatureSpace, posterior: EnsemblePosterior, means: TrackSums
) -> tuple[np.ndarray, np.ndarray]:
    """All scores of SCORES, and the Laplace mutual information in nats.  t tracks -> [t, scores], [t]"""
    variance = scores.fused_variance(posterior_under(posterior, SCORE_PRIOR), means.features)
    information = scores.laplace_information(means.logits, variance)
    top = means.logits.argmax(axis=1)
    unit = scores.unit_features(means.features)
    lengths = np.linalg.norm(means.features[..., :-1], axis=-1)
    columns = {
        "entropy": np.log(scores.mean_pmf_entropy(means.pmf) + 1e-4),
        "information": np.log(information + 1e-6),
        "energy": -means.signs[:, 1],
        "neighbours": np.log(scores.neighbour_distance(space.bank, unit) + 1e-4),
        "mahalanobis": np.log(scores.class_distance(means.features, space.whitening, space.centres) + 1e-6),
        "residual": np.log(scores.residual_norm(means.features, space.middle, space.residual) + 1e-6),
        "disagreement": np.log(means.signs[:, 2] + 1e-4),
        "view_entropy": np.log(means.signs[:, 0] + 1e-4),
        "feature_norm": np.log(np.maximum(lengths, 1e-6)).mean(axis=1),
        "view_norm": means.signs[:, 3],
        "top_logit": -means.logits.max(axis=1),
        "variance": np.log(variance[np.arange(len(top)), top] + 1e-9),
        "length": np.log(np.maximum(means.count, 1.0)),
    }
    return np.stack([columns[name] for name in SCORES], axis=1), information
