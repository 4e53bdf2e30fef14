"""What is said about tracks besides their class: numbers, warnings, and verdicts made of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

OUT_OF_DISTRIBUTION = "out_of_distribution"
IDENTITY_SWITCH = "identity_switch"
CAMERA_DISAGREEMENT = "camera_disagreement"
CANNOT_TELL = "cannot_tell"
NOTHING_THERE = "nothing_there"  # also the name of the outcome that leads then
TESTED = (OUT_OF_DISTRIBUTION, IDENTITY_SWITCH, CAMERA_DISAGREEMENT, CANNOT_TELL)  # each has a p-value
REASONS = (*TESTED, NOTHING_THERE)
# What users see of the p-values, on /ood_warnings and in fused.csv, in the order of TESTED.
P_VALUE_NAMES = ("familiarity", "consistency", "agreement", "readability")


class Level(IntEnum):
    """How bad it is; the numbers are those of diagnostic_msgs/DiagnosticStatus."""

    OK = 0
    WARN = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class Scores:
    """What was measured of the tracks of a frame.

    Attributes:
        mutual_information, ood_score: as in Verdict.                            [tracks]
        p_values: those of Verdict, in the order of TESTED.                      [tracks, tested]
    """

    mutual_information: np.ndarray
    ood_score: np.ndarray
    p_values: np.ndarray

    @classmethod
    def ordinary(cls, tracks: int) -> Scores:
        """Of tracks that nobody watches."""
        return cls(np.zeros(tracks), np.zeros(tracks), np.ones((tracks, len(TESTED))))


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows from the scores.

    Attributes:
        raised: which of REASONS hold.                                          [tracks, reasons] bool
        level: 0, 1 or 2.                                                       [tracks] int
        switched: an identity switch is seen with this frame.                   [tracks] bool
        ended: the last of its warnings ended.                                  [tracks] bool
    """

    raised: np.ndarray
    level: np.ndarray
    switched: np.ndarray
    ended: np.ndarray


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known about one track.

    The p-values are shares of ordinary tracks that ever look at least as odd: small is alarming.

    Attributes:
        pmf: the fused class distribution.                                              [classes]
        top, probability: its most probable class.
        entropy, normalised_entropy: of the pmf, in nats and as a share of ln(classes).
        mutual_information: what is unknown because the weights are: Laplace under a weak prior, fused
            prediction, in nats.
            It, the score and p_known are renewed at the first five views, then at every fifth at least, later
            more rarely (`flow.due_for_scores`).
        ood_score: the score of the warning model, large for objects unlike the training data.
        p_known: p-value of the object being one that the networks know, in pictures as bad as these.
        p_one_object: p-value of the last views showing one object.
        p_cameras_agree: p-value of the cameras seeing the same class.
        p_readable: the same in whatever pictures; where it is small and p_known is not, nobody can tell.
        views: views fused so far, by camera.
        level, reasons: the warning; no reasons at level OK.
    """

    pmf: np.ndarray
    top: int
    probability: float
    entropy: float
    normalised_entropy: float
    mutual_information: float
    ood_score: float
    p_known: float
    p_one_object: float
    p_cameras_agree: float
    p_readable: float
    views: dict[str, int]
    level: Level
    reasons: tuple[str, ...]

    @property
    def p_values(self) -> dict[str, float]:
        """By the names that users see."""
        numbers = self.p_known, self.p_one_object, self.p_cameras_agree, self.p_readable
        return dict(zip(P_VALUE_NAMES, numbers, strict=True))


@dataclass(frozen=True, slots=True)
class Verdicts(Sequence[Verdict]):
    """The verdicts of all tracks of a frame, column by column; an item is made when asked for.

    Attributes:
        pmf: [tracks, classes]
        entropy, mutual_information, ood_score: as in Verdict.             [tracks]
        p_values: as in Scores.                                            [tracks, tested]
        views: views fused so far, by camera.                              [tracks, cameras]
        cameras: names of the columns of `views`.
        level: 0, 1 or 2.                                                  [tracks] int
        raised: which of REASONS hold.                                     [tracks, reasons] bool
        thresholds: false-alarm rate at which each tested reason is raised.
    """

    pmf: np.ndarray
    entropy: np.ndarray
    mutual_information: np.ndarray
    ood_score: np.ndarray
    p_values: np.ndarray
    views: np.ndarray
    cameras: tuple[str, ...]
    level: np.ndarray
    raised: np.ndarray
    thresholds: dict[str, float]

    def __len__(self) -> int:
        return len(self.pmf)

    def __iter__(self) -> Iterator[Verdict]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, i: int) -> Verdict:  # type: ignore[override]
        pmf = self.pmf[i]
        top = int(pmf.argmax())
        p_known, p_one_object, p_cameras_agree, p_readable = self.p_values[i].tolist()
        seen = zip(self.cameras, self.views[i].tolist(), strict=True)
        return Verdict(
            pmf=pmf,
            top=top,
            probability=float(pmf[top]),
            entropy=float(self.entropy[i]),
            normalised_entropy=float(self.entropy[i] / np.log(max(len(pmf), 2))),
            mutual_information=float(self.mutual_information[i]),
            ood_score=float(self.ood_score[i]),
            p_known=p_known,
            p_one_object=p_one_object,
            p_cameras_agree=p_cameras_agree,
            p_readable=p_readable,
            views={camera: count for camera, count in seen if count},
            level=Level(int(self.level[i])),
            reasons=tuple(reason for reason, on in zip(REASONS, self.raised[i], strict=True) if on),
        )
