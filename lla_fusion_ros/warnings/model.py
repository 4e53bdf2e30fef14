"""The fitted part of the warnings: frozen, stored in a bundle as arrays and JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from lla_fusion_ros.types.errors import BundleError
from lla_fusion_ros.types.views import QUALITIES
from lla_fusion_ros.warnings.alarm import AlarmTable

MOST_STANDARD = 8.0  # standard deviations that a score may count
MOST_DEVIANT = 4.0  # standard deviations that a quality may count
LARGEST_PROJECTION = 1e6  # in standard deviations: keeps sums over the last views finite
# The columns of the logistic regression, computed in `scores.py`.
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
        """Features with the bias as the identity-switch test compares them.  [t, networks, D] -> [t, r]"""
        plain = features[..., :-1].reshape(len(features), len(self.projection))
        return np.clip(plain @ self.projection, -LARGEST_PROJECTION, LARGEST_PROJECTION)


@dataclass(frozen=True, slots=True)
class Excuse:
    """How odd known objects look in pictures of some quality: a polynomial of second order.

    Attributes:
        center, scale: of QUALITIES on known objects.          [qualities]
        terms: constant, qualities, products of two of them.   [1 + qualities + pairs]
    """

    center: np.ndarray
    scale: np.ndarray
    terms: np.ndarray

    @classmethod
    def nothing(cls) -> Excuse:
        """No picture excuses anything."""
        count = len(QUALITIES)
        return cls(np.zeros(count), np.ones(count), np.zeros(1 + count + count * (count + 1) // 2))

    def __call__(self, quality: np.ndarray) -> np.ndarray:
        """[t, qualities] -> [t]"""
        return quality_columns((quality - self.center) / self.scale) @ self.terms

    def check(self) -> None:
        """Refuse what does not fit QUALITIES."""
        expected = Excuse.nothing()
        for name in ("center", "scale", "terms"):
            value = getattr(self, name)
            if value.shape != getattr(expected, name).shape or not np.isfinite(value).all():
                raise BundleError(f"the warning model's excuse has a '{name}' of shape {value.shape} or NaN")
        if not (self.scale > 0).all():
            raise BundleError("the warning model's excuse has a scale that is not positive")


def quality_columns(standard: np.ndarray) -> np.ndarray:
    """1, the qualities and their products, within MOST_DEVIANT.  [t, qualities] -> [t, terms]"""
    z = np.clip(standard, -MOST_DEVIANT, MOST_DEVIANT)
    first, second = np.triu_indices(z.shape[1])
    return np.column_stack([np.ones(len(z)), z, z[:, first] * z[:, second]])


@dataclass(frozen=True, slots=True)
class WarningModel:
    """A logistic combination of the scores in SCORES, what bad pictures excuse of it, and all thresholds.

    Attributes:
        space: what the feature scores compare with.
        center, scale, coefficients, intercept: logit = intercept + sum coefficients (score - center) / scale.
        excuse: how much of the score pictures of some quality explain (`excused`).
        feature_weight: weight of the feature change in the identity-switch statistic.
        camera_span: seconds within which views of several cameras count as "at one time".
        ood: thresholds by false-alarm rate per track, of the score less what is excused.
        odd: of the score itself, for ordinary pictures.
        switch, camera: of the two tests that compare views with each other.
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
    odd: AlarmTable
    excuse: Excuse

    @property
    def camera_span_ns(self) -> int:
        """The same in nanoseconds."""
        return round(self.camera_span * 1e9)

    def ood_score(self, columns: np.ndarray) -> np.ndarray:
        """Log-odds of being an outlier; large is alarming.  [t, scores] -> [t]"""
        standard = np.clip((columns - self.center) / self.scale, -MOST_STANDARD, MOST_STANDARD)
        return self.intercept + standard @ self.coefficients

    def excused(self, quality: np.ndarray, measured: np.ndarray) -> np.ndarray:
        """The score that few known objects exceed in such pictures; where not measured, in the usual one.

        quality [t, qualities], measured [t] bool -> [t]
        """
        return self.excuse(np.where(measured[:, None], quality, self.excuse.center))

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
        self.excuse.check()
        for table in (self.ood, self.odd, self.switch, self.camera):
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
            "odd": asdict(self.odd),
            "excuse": {name: value.tolist() for name, value in asdict(self.excuse).items()},
        }
        return arrays, record

    @classmethod
    def from_parts(cls, arrays: dict[str, np.ndarray], record: dict[str, Any]) -> WarningModel:
        """What `to_parts` gave; a record of another kind is refused.

        A record without `excuse` is of an older file: no picture excuses anything, and none is called bad.
        """
        try:
            if tuple(record["scores"]) != SCORES:
                raise BundleError(
                    f"the warning model uses the scores {record['scores']}, this version knows "
                    f"{list(SCORES)}; train or calibrate the bundle again"
                )
            odd, excuse = record.get("odd", record["ood"]), record.get("excuse", {})
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
                odd=AlarmTable(tuple(odd["thresholds"]), odd["tracks"]),
                excuse=Excuse(**{name: np.asarray(value, float) for name, value in excuse.items()})
                if excuse
                else Excuse.nothing(),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise BundleError(f"the warning model is incomplete: {error!r}") from error
