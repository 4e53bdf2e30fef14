"""What a fault is: how it is injected, what is expected, and where. One list of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

# In the order of the report. Each module's faults register themselves when it is imported.
MODULES = (
    "deaths",
    "transport",
    "stamps",
    "images",
    "boxes_and_ids",
    "parameters",
    "surroundings",
    "neighbours",
    "detectors",
    "two_computers",
)
# Faults of the same scene share its processes: "perception" (one process), "distributed" (classifier and
# fusion apart), "detector" (one process, with tracker, association and ONNX Runtime), "two_computers" (with a
# link between them); "alone" ones start what they need.
SCENES = ("perception", "distributed", "detector", "two_computers", "alone")


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault.

    Attributes:
        injects: what is done, for the report.
        expects: what must hold besides what holds for every fault (see `outcome.ALWAYS`).
        inject: does it, checks what is special about it and returns how often it was injected.
        bounded: part of `make test` too.
    """

    name: str
    injects: str
    expects: str
    scene: str
    bounded: bool
    inject: Callable[[Any, Any], int]


_FAULTS: dict[str, Fault] = {}


def fault(
    injects: str, expects: str, scene: str = "perception", bounded: bool = True
) -> Callable[[Callable[[Any, Any], int]], Callable[[Any, Any], int]]:
    """Register a function as a fault; it gets the scene and the checks of this run."""

    def register(inject: Callable[[Any, Any], int]) -> Callable[[Any, Any], int]:
        assert scene in SCENES
        name = inject.__name__
        assert name not in _FAULTS, f"two faults are called {name}"
        _FAULTS[name] = Fault(name, injects, expects, scene, bounded, inject)
        return inject

    return register


def all_faults() -> tuple[Fault, ...]:
    """Every fault, in the order of the report."""
    for module in MODULES:
        import_module(f"faults.{module}")
    return tuple(_FAULTS.values())
