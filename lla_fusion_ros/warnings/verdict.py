"""What the core says about a track besides its class: a verdict, as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

OUT_OF_DISTRIBUTION = "out_of_distribution"
IDENTITY_SWITCH = "identity_switch"
CAMERA_DISAGREEMENT = "camera_disagreement"
REASONS = (OUT_OF_DISTRIBUTION, IDENTITY_SWITCH, CAMERA_DISAGREEMENT)


class Level(IntEnum):
    """How bad it is; the numbers are those of diagnostic_msgs/DiagnosticStatus."""

    OK = 0
    WARN = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known about one track.

    Attributes:
        pmf: the fused class distribution.                                              [classes]
        top, probability: its most probable class.
        entropy, normalised_entropy: of the pmf, in nats and as a share of ln(classes).
        mutual_information: what is unknown because the weights are: Laplace under a weak prior, fused
            prediction, in nats.
            It, the score and the familiarity are renewed at the first five views, then at every fifth at
            least, later more rarely (`watch.PATIENCE`).
        ood_score: the score of the warning model, large for objects unlike the training data.
        familiarity: share of ordinary tracks with an OOD score at least as large; small is alarming.
        consistency: share of ordinary tracks with a stronger sign of an identity switch; small is alarming.
        agreement: share of ordinary tracks with a stronger sign of disagreeing cameras; small is alarming.
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
    familiarity: float
    consistency: float
    agreement: float
    views: dict[str, int]
    level: Level
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdicts(Sequence[Verdict]):
    """The verdicts of all tracks of a frame, column by column; an item is made when asked for.

    Attributes:
        pmf: [tracks, classes]
        entropy, mutual_information, ood_score, familiarity, consistency, agreement: as in Verdict.  [tracks]
        views: views fused so far, by camera.                              [tracks, cameras]
        cameras: names of the columns of `views`.
        level: 0, 1 or 2.                                                  [tracks] int
        raised: which of REASONS hold.                                     [tracks, reasons] bool
        thresholds: false-alarm rate at which each reason is raised.
    """

    pmf: np.ndarray
    entropy: np.ndarray
    mutual_information: np.ndarray
    ood_score: np.ndarray
    familiarity: np.ndarray
    consistency: np.ndarray
    agreement: np.ndarray
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
        seen = zip(self.cameras, self.views[i].tolist(), strict=True)
        return Verdict(
            pmf=pmf,
            top=top,
            probability=float(pmf[top]),
            entropy=float(self.entropy[i]),
            normalised_entropy=float(self.entropy[i] / np.log(max(len(pmf), 2))),
            mutual_information=float(self.mutual_information[i]),
            ood_score=float(self.ood_score[i]),
            familiarity=float(self.familiarity[i]),
            consistency=float(self.consistency[i]),
            agreement=float(self.agreement[i]),
            views={camera: count for camera, count in seen if count},
            level=Level(int(self.level[i])),
            reasons=tuple(reason for reason, on in zip(REASONS, self.raised[i], strict=True) if on),
        )
