"""What a training run is told, as plain values that travel in the bundle."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from lla_fusion_ros.networks import Normalisation
from lla_fusion_ros.types.errors import InputError


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """Settings of one ensemble.

    Attributes:
        architecture: what `build_network` takes.
        margin: by how much of its side a box is grown on each side before it is cut.
        members: C, the number of networks; member c starts from seed `seed + c`.
        epochs, batch, learning_rate: Adam under a one-cycle learning rate; 0 epochs keep the start.
        prior_precision: L2 prior on all weights, the P0^-1 of the paper: adds
            prior_precision / (2 N) |theta|^2 to the mean cross-entropy of N crops.
        label_smoothing: share of the target spread evenly over the classes.
        balance: how far rare classes are drawn more often: 0 shows every crop once an epoch, 1 all classes
            equally often (a class of n crops is drawn in proportion to n ** (1 - balance)).
        share: of the crops that an epoch shows, drawn again for each; the frames of a track are much alike.
        averaging: decay per step of the exponential average of the weights, which is what is kept;
            0 keeps the last weights.
        clean, hard: shares of the crops of an epoch that are clean (slightly moved and lit) and hard; the
            rest is mixed. docs/method.md defines the regimes.
        faded: share of the crops that lose up to nine tenths of their colour, or gain some.
        relit: share of the crops with other contrasts, and surroundings brighter or darker than they were.
        coded: share of the crops as other cameras send them: JPEG, other colours and contrasts, another side.
        outliers: synthetic outliers added to each batch, as a share of it; the networks learn to know nothing
            about them (uniform target), which is what makes unknown objects stand out. 0 switches it off.
        repulsion: strength of the kernel that pushes the members' predictions apart; 0 trains them
            one by one, independently.
        shared: how many of their leading convolutions all members have in common, which costs little more
            than one network; the members are then trained together.
        seed: of everything random.
    """

    architecture: dict[str, Any]
    margin: float = 0.1
    members: int = 5
    epochs: int = 30
    batch: int = 128
    learning_rate: float = 3e-3
    prior_precision: float = 1.0
    label_smoothing: float = 0.0
    balance: float = 0.0
    share: float = 1.0
    averaging: float = 0.995
    clean: float = 0.4
    hard: float = 0.3
    faded: float = 0.0
    relit: float = 0.0
    coded: float = 0.0
    outliers: float = 0.15
    repulsion: float = 0.0
    shared: int = 0
    seed: int = 0
    normalisation: Normalisation = field(default_factory=Normalisation)

    def __post_init__(self) -> None:
        limits = {
            "members": self.members >= 1,
            "epochs": self.epochs >= 0,
            "batch": self.batch >= 2,
            "learning_rate": self.learning_rate > 0,
            "prior_precision": self.prior_precision >= 0,
            "label_smoothing": 0 <= self.label_smoothing < 1,
            "balance": 0 <= self.balance <= 1,
            "share": 0 < self.share <= 1,
            "averaging": 0 <= self.averaging < 1,
            "clean": 0 <= self.clean <= 1,
            "hard": 0 <= self.hard <= 1 - self.clean + 1e-9,
            "faded": 0 <= self.faded <= 1,
            "relit": 0 <= self.relit <= 1,
            "coded": 0 <= self.coded <= 1,
            "outliers": 0 <= self.outliers <= 1,
            "repulsion": self.repulsion >= 0,
            "shared": self.shared >= 0,
            "margin": 0 <= self.margin < 10,
        }
        for name, fine in limits.items():
            if not fine:
                raise InputError(f"training setting {name} = {getattr(self, name)} is out of range")
        if self.repulsion > 0 and self.members < 2:
            raise InputError("repulsive training needs at least 2 members")

    @property
    def size(self) -> int:
        """Side of the crops in pixels."""
        return int(self.architecture["size"])

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
