"""The numbers to reach, and whether a run reached them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """One line of the table.

    Attributes:
        value: as measured; None where it was not measured.
        limit: the number to reach.
        at_most: whether it is an upper limit.
    """

    text: str
    value: float | None
    limit: float
    at_most: bool = True

    @property
    def met(self) -> bool | None:
        if self.value is None:
            return None
        return self.value <= self.limit if self.at_most else self.value >= self.limit


def targets(document: Document) -> list[Target]:
    """All targets of the project in the order of the page."""
    return [
        _prediction(document, 43, 84, 16, 1.15),
        _prediction(document, 43, 84, 1, 1.5),
        _prediction(document, 43, 256, 16, 1.4),
        Target(
            "speed against laplace-torch kron, M=43, d=84, batch 16",
            _pick(document, "laplace_torch", "speedup", M=43, d=84, batch=16),
            10.0,
            at_most=False,
        ),
        *(
            Target(
                f"default fuser and warnings against the float32 forward, per view, {bundle}, L={length}, "
                f"tracks a frame: {tracks}",
                _pick(document, section, "ratio_forward", default=True, L=length, tracks=tracks),
                0.10,
            )
            for section, bundle in (("fusion", "road bundle"), ("fusion_live", "demo bundle"))
            for length in (10, 1000)
            for tracks in (1, 10, 100)
        ),
        Target(
            "default fuser and warnings: L=1000 against L=10, 10 tracks a frame",
            _pick(document, "fusion", "ratio_L10", default=True, L=1000, tracks=10),
            1.1,
        ),
        *(
            Target(
                f"replay: views/s against the bare loop, both in {precision}",
                _pick(document, "replay", "ratio_bare", precision=precision),
                0.75,
                at_most=False,
            )
            for precision in ("float32", "int8")
        ),
        Target("live, 1×: CPU per view against the plain node", _live(document, "cpu_ratio_plain"), 1.3),
        Target("live, 1× (6 cameras, 10 Hz, 20 objects): dropped frames", _live(document, "drops"), 0.0),
    ]


def _prediction(document: Document, classes: int, width: int, batch: int, limit: float) -> Target:
    return Target(
        f"prediction with covariance against plain, M={classes}, d={width}, batch {batch}",
        _pick(
            document,
            "prediction",
            "ratio_plain",
            network="road",
            networks=5,
            M=classes,
            d=width,
            batch=batch,
            method="probit",
        ),
        limit,
    )


def _live(document: Document, field: str) -> float | None:
    return _pick(document, "live", field, rate=1.0, cameras=6)


def _pick(document: Document, section: str, field: str, **wanted: Any) -> float | None:
    """The field of the first record that agrees with all of `wanted`."""
    records: Iterable[dict[str, Any]] = document.get(section, ())
    for record in records:
        if all(record.get(key) == value for key, value in wanted.items()) and field in record:
            return float(record[field])
    return None
