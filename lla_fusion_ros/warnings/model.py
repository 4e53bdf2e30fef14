"""The fitted part of the warnings: frozen, stored in a bundle as arrays and JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from lla_fusion_ros.types.errors import BundleError, InputError
from lla_fusion_ros.types.views import OLDER_QUALITIES, QUALITIES

DISTRUST = 2.0  # a view weighs e^(-DISTRUST H), H the entropy of its pmf: useless frames say little
MOST_STANDARD = 8.0  # standard deviations that a score may count
BAD_PICTURES = 0.05  # the share of known tracks that are as odd as all are in pictures too bad to tell
PATIENCE = 30.0  # views after which far objects are judged as sharply as they will be
# Shares of ordinary tracks, largest first: the grid on which thresholds are kept.
RATES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0001)
FEWEST_COUNTED = 5  # objects must be beyond a threshold for it to be read off, not extrapolated
_LOG_RATES = np.log(RATES)  # falls from 0
# The columns of the logistic regression that tells unknown objects, computed in `scores.py`.
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
    """Where the features of known objects lie (k classes, r directions).

    Attributes:
        bank: unit mean features of each class; of many tracks in bundles made before.  [b, networks * d]
        whitening: of the spread within a class.                             [networks, d, d]
        centres: whitened class means.                                       [networks, k, d]
        middle: mean feature.                                                   [networks, d]
        residual: directions that known objects hardly use.                  [networks, d, r]
    """

    bank: np.ndarray
    whitening: np.ndarray
    centres: np.ndarray
    middle: np.ndarray
    residual: np.ndarray

    @property
    def neighbours(self) -> int:
        """How many of the bank a track is compared with: the nearest class, or the five nearest tracks."""
        return 1 if len(self.bank) <= self.centres.shape[1] else 5


@dataclass(frozen=True, slots=True)
class AlarmTable:
    """Thresholds of one statistic for stated false-alarm rates per track.

    They turn a statistic into its p-value, the share of ordinary tracks that ever reach it.

    Attributes:
        thresholds: the value that a share RATES[i] of ordinary tracks ever reaches, rising.  [rates]
        tracks: the number of tracks it was measured on.
    """

    thresholds: tuple[float, ...]
    tracks: int

    @classmethod
    def measure(cls, largest: np.ndarray, objects: np.ndarray | None = None) -> AlarmTable:
        """From the largest value that each ordinary track reaches in its life.  2 x [tracks]

        Rates too rare to be counted on so few objects follow an exponential tail, fitted to the mean excess
        over the 90% quantile. `objects` says which tracks show the same one, degraded again: they are more
        tracks, but not more evidence of what is rare. None: each shows another.
        """
        if len(largest) < 10 or not np.isfinite(largest).all():
            raise InputError(
                f"a threshold needs at least 10 finite values of ordinary tracks, not {len(largest)}"
            )
        count = len(largest if objects is None else np.unique(objects))
        start = float(np.quantile(largest, 0.9))
        excess = largest[largest >= start] - start
        slope = max(float(excess.mean()), 1e-6)
        thresholds: list[float] = []
        for rate in RATES:
            if rate * count >= FEWEST_COUNTED:
                value = float(np.quantile(largest, 1.0 - rate))
            else:
                value = start + slope * float(np.log(0.1 / rate))
            thresholds.append(max(value, thresholds[-1] + 1e-9) if thresholds else value)
        return cls(tuple(thresholds), len(largest))

    @classmethod
    def measure_worst(
        cls,
        largest: np.ndarray,
        conditions: np.ndarray,
        objects: np.ndarray | None = None,
        allowance: float = 1.0,
    ) -> AlarmTable:
        """The stated rates hold in each of the conditions, not just on average over them.  3 x [tracks]

        It rains on a whole drive: fewer alarms on sunny days would not help then. With an `allowance` above 1
        they hold on average, and in each condition as many times the rate. Conditions of less than 10 tracks
        tell nothing by themselves; all tracks together are one condition, too.
        """
        strictest = np.array(cls.measure(largest, objects).thresholds)
        for own in conditions == np.unique(conditions)[:, None]:
            if own.sum() >= 10:
                table = cls.measure(largest[own], None if objects is None else objects[own])
                allowed = [table.threshold(min(allowance * rate, 1.0)) for rate in RATES]
                strictest = np.maximum(strictest, allowed)
        return cls(tuple(strictest.tolist()), len(largest))

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> AlarmTable:
        return cls(tuple(record["thresholds"]), record["tracks"])

    def check(self) -> None:
        """Refuse thresholds that are not one rising number for each of RATES."""
        values = np.asarray(self.thresholds)
        good = values.shape == (len(RATES),) and values.dtype.kind in "fi" and np.isfinite(values).all()
        if not good or (np.diff(values) < 0).any():
            raise InputError(f"the thresholds of a warning must be {len(RATES)} rising numbers")

    def at_least_odds(self) -> AlarmTable:
        """For a log-likelihood ratio: no threshold below ln(1 / rate).

        A ratio of 1 / rate is met by chance in a share `rate` of cases at most, so tracks that happen to be
        cleaner than the road must not make the test more nervous than that.
        """
        floored = (
            max(value, -float(np.log(rate))) for value, rate in zip(self.thresholds, RATES, strict=True)
        )
        return AlarmTable(tuple(floored), self.tracks)

    def threshold(self, rate: float) -> float:
        """The threshold for a false-alarm rate per track."""
        return float(np.interp(-np.log(rate), -_LOG_RATES, self.thresholds))

    def p_value(self, statistic: np.ndarray) -> np.ndarray:
        """The share of ordinary tracks that ever reach this value; 1 is nothing unusual.  [t]"""
        return np.exp(np.interp(statistic, self.thresholds, _LOG_RATES))


# Of the log-odds of a change, where a file has none of its own.
USUAL_CHANGE = AlarmTable((-9.0, -5.0, -4.0, -3.5, -3.0, -2.0, -1.0, 0.0, 1.5, 2.5, 3.5, 6.0), 0)
NEVER = AlarmTable((1e9,) * len(RATES), 0)  # no data to compare with: the warning is never raised


@dataclass(frozen=True, slots=True)
class Detector:
    """Log-odds from a logistic regression over columns, and their thresholds.

    Attributes:
        center, scale, coefficients: logit = intercept + sum coefficients (column - center) / scale. [columns]
        alarm: thresholds of the logit by false-alarm rate per track.
    """

    center: np.ndarray
    scale: np.ndarray
    coefficients: np.ndarray
    intercept: float
    alarm: AlarmTable

    def __call__(self, columns: np.ndarray) -> np.ndarray:
        """Large is alarming.  [t, columns] -> [t]"""
        standard = np.clip((columns - self.center) / self.scale, -MOST_STANDARD, MOST_STANDARD)
        return self.intercept + standard @ self.coefficients

    def check(self, name: str, columns: int) -> None:
        for field in ("center", "scale", "coefficients"):
            array = getattr(self, field)
            if array.shape != (columns,) or not np.isfinite(array).all():
                raise BundleError(
                    f"the warning model's '{field}' of '{name}' is not {columns} finite numbers"
                )
        if not (np.isfinite(self.intercept) and (self.scale > 0).all()):
            raise BundleError(f"the warning model's '{name}' has an intercept or scale that is no number")
        self.alarm.check()

    def as_dict(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name).tolist() for name in ("center", "scale", "coefficients")}
        return {**arrays, "intercept": self.intercept, "alarm": asdict(self.alarm)}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Detector:
        center, scale, weights = (np.asarray(record[n], float) for n in ("center", "scale", "coefficients"))
        alarm = AlarmTable.from_dict(record["alarm"])
        return cls(center, scale, weights, float(record["intercept"]), alarm)


def quality_columns(quality: np.ndarray) -> np.ndarray:
    """The qualities of pictures and their products.  [t, qualities] -> [t, columns]"""
    first, second = np.triu_indices(quality.shape[1])
    return np.column_stack([quality, quality[:, first] * quality[:, second]])


@dataclass(frozen=True, slots=True)
class Distance:
    """What the size of the boxes adds to the score that is usual: far objects show little, and look odd.

    Attributes:
        near: side in image pixels from which on it adds nothing.
        rise: what it adds at half that side after PATIENCE views; more after fewer, as what hides a part of
            an object, or blurs it, goes by when the vehicle comes nearer.
        smallest: side of the smallest boxes that were fitted on; nobody can tell what smaller ones show.
    """

    near: float = 1.0
    rise: float = 0.0
    smallest: float = 0.0

    def __call__(self, log_size: np.ndarray, views: np.ndarray) -> np.ndarray:
        """Nothing where the size is not known.  2 x [t] -> [t]"""
        far = np.maximum(np.nan_to_num(self.near * np.exp(-log_size)) - 1.0, 0.0)
        return self.rise * far * (1.0 + np.log(PATIENCE / np.clip(views, 1.0, PATIENCE)))

    def beyond(self, log_size: np.ndarray) -> np.ndarray:
        """Which boxes are smaller than any that were fitted on.  [t] -> [t] bool"""
        return np.exp(log_size) < self.smallest

    def check(self) -> None:
        numbers = np.array([self.near, self.rise, self.smallest])
        if not (np.isfinite(numbers).all() and (numbers >= 0).all()):
            raise BundleError("the warning model's 'distance' is not three numbers of at least 0")


@dataclass(frozen=True, slots=True)
class Usual:
    """The score that known objects have in pictures of some quality; an unknown one must be beyond it.

    Attributes:
        picture: of `quality_columns`, the mean score; its thresholds are those of the score beyond it.
        lowest, highest: what it is limited to, as pictures may be unlike any that were fitted on.
        names: the qualities it was fitted on.
        distance: what small boxes add.
    """

    picture: Detector
    lowest: float
    highest: float
    names: tuple[str, ...] = QUALITIES
    distance: Distance = Distance()

    def __call__(self, quality: np.ndarray) -> np.ndarray:
        """[t, qualities] -> [t], NaN where one of them is not known"""
        columns = quality_columns(quality[:, [QUALITIES.index(name) for name in self.names]])
        return np.clip(self.picture(columns), self.lowest, self.highest)

    def check(self) -> None:
        wrong = [name for name in self.names if name not in QUALITIES]
        if wrong:
            raise BundleError(f"the warning model knows a quality that this version does not: '{wrong[0]}'")
        self.picture.check("usual", quality_columns(np.zeros((1, len(self.names)))).shape[1])
        if not np.isfinite([self.lowest, self.highest]).all() or self.lowest > self.highest:
            raise BundleError("the warning model's 'usual' scores have no range")
        self.distance.check()

    def as_dict(self) -> dict[str, Any]:
        return {
            "picture": self.picture.as_dict(),
            "lowest": self.lowest,
            "highest": self.highest,
            "names": list(self.names),
            "distance": asdict(self.distance),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Usual:
        """Files made before qualities had names know the older ones, and nothing of distance."""
        picture = Detector.from_dict(record["picture"])
        names = tuple(record.get("names", OLDER_QUALITIES))
        distance = Distance(**record.get("distance", {}))
        return cls(picture, float(record["lowest"]), float(record["highest"]), names, distance)


@dataclass(frozen=True, slots=True)
class WarningModel:
    """What tells unknown objects in pictures of any quality, and the thresholds of all warnings.

    Attributes:
        space: what the feature scores compare with.
        unknown: of the scores in SCORES.
        usual: the score to expect by the quality of the pictures; None where no bad ones were fitted on.
        camera_span: seconds within which views of several cameras count as "at one time".
        camera: thresholds by false-alarm rate per track.
        quality: what was measured when fitting, for the record (AUROC on synthetic outliers and the like).
    """

    space: FeatureSpace
    unknown: Detector
    usual: Usual | None
    camera_span: float
    camera: AlarmTable
    quality: dict[str, float]

    @property
    def camera_span_ns(self) -> int:
        """The same in nanoseconds."""
        return round(self.camera_span * 1e9)

    def p_values(
        self, score: np.ndarray, quality: np.ndarray, log_size: np.ndarray, views: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """p_known, in pictures as good or bad as these, and p_readable, in whatever pictures.  2 x [t]

        Where the usual score itself is that of few known tracks, nothing can be called unknown, nor in boxes
        smaller than any that were fitted on, where nobody can tell.
        score [t], quality [t, qualities], NaN where it was not measured: both are the same then;
        log_size [t]: ln of the box's side, NaN where it is not known; views [t]: how many were seen
        """
        odd = self.unknown.alarm.p_value(score)
        if self.usual is None:
            return odd, odd
        usual = self.usual(quality)
        judged = np.isfinite(usual)
        usual = np.where(judged, usual, 0.0)
        given = self.usual.picture.alarm.p_value(score - usual - self.usual.distance(log_size, views))
        hopeless = self.unknown.alarm.p_value(usual) <= BAD_PICTURES
        known = np.where(judged, np.where(hopeless, 1.0, given), odd)
        beyond = self.usual.distance.beyond(log_size)
        return np.where(beyond, 1.0, known), np.where(beyond, RATES[-1], odd)

    def check(self, networks: int, features: int) -> None:
        """Refuse a model whose parts do not fit each other or the ensemble, before it meets a frame."""
        width, space = features - 1, self.space
        shapes = {
            "bank": (len(space.bank), networks * width),
            "whitening": (networks, width, width),
            "centres": (networks, *space.centres.shape[1:2], width),
            "middle": (networks, width),
            "residual": (networks, width, *space.residual.shape[2:3]),
        }
        for name, shape in shapes.items():
            array = getattr(space, name)
            if array.shape != shape or array.size == 0 and name != "residual":
                raise BundleError(f"the warning model's '{name}' has shape {array.shape}, expected {shape}")
            if not np.isfinite(array).all():
                raise BundleError(f"the warning model's '{name}' holds NaN or infinity")
        self.unknown.check("unknown", len(SCORES))
        if self.usual is not None:
            self.usual.check()
        if not (np.isfinite(self.camera_span) and self.camera_span >= 0):
            raise BundleError("the warning model holds a number that is not finite or not positive")
        self.camera.check()

    def to_parts(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and JSON, for a bundle."""
        arrays = {f.name: getattr(self.space, f.name) for f in fields(FeatureSpace)}
        arrays["bank"] = self.space.bank.astype(np.float16)  # by far the largest part
        record = {
            "scores": list(SCORES),
            "distrust": DISTRUST,
            "unknown": self.unknown.as_dict(),
            "usual": None if self.usual is None else self.usual.as_dict(),
            "camera_span": self.camera_span,
            "camera": asdict(self.camera),
            "quality": self.quality,
        }
        return arrays, record

    @classmethod
    def from_parts(cls, arrays: dict[str, np.ndarray], record: dict[str, Any]) -> WarningModel:
        """What `to_parts` gave; a record of another kind is refused."""
        try:
            if (tuple(record["scores"]), record["distrust"]) != (SCORES, DISTRUST):
                raise BundleError(
                    f"the warning model has scores {record['scores']} and distrust {record['distrust']}, "
                    f"this version {list(SCORES)} and {DISTRUST}; train or calibrate the bundle again"
                )
            space = FeatureSpace(**{f.name: arrays[f.name].astype(np.float32) for f in fields(FeatureSpace)})
            usual = record["usual"]
            return cls(
                space=space,
                unknown=Detector.from_dict(record["unknown"]),
                usual=None if usual is None else Usual.from_dict(usual),
                camera_span=float(record["camera_span"]),
                camera=AlarmTable.from_dict(record["camera"]),
                quality=dict(record["quality"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise BundleError(
                f"the warning model is incomplete: {error!r}; calibrate the bundle again"
            ) from error
