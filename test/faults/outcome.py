"""What came out of one injected fault: single checks, each a sentence that held or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Checked for every fault, by the runner.
ALWAYS = (
    "no process ends by itself, none prints a traceback, none reports an internal error",
    "every published frame was sent, has no other track than the sent ones, and equals what the core alone "
    "computes from the published frames (tolerance 1e-4): nothing stale, nothing foreign",
    "the first good frame of each camera after the fault is fused",
    "resident memory grows by less than 64 MB",
)
MOST_GROWTH = 64.0  # MB: `input_depth` and `queue_depth` raw frames, and the pools of malloc and Fast DDS


class NotPossible(Exception):
    """The machine does not let this fault be injected (no mounts, say): explained, no failure."""


@dataclass(slots=True)
class Checks:
    """The checks of one fault in one run; `recovery` is how many seconds the answers took to come back."""

    failures: list[str] = field(default_factory=list)
    held: int = 0
    recovery: float | None = None

    def that(self, ok: object, sentence: str) -> bool:
        """Note whether something holds; the sentence is told where it does not."""
        if ok:
            self.held += 1
        else:
            self.failures.append(sentence)
        return bool(ok)

    def counts(self, found: Mapping[str, int], expected: Mapping[str, int], where: str) -> None:
        """Counters of /diagnostics grew by just so much; those not named, `dropped_` ones, not at all."""
        for key, count in expected.items():
            told = f"{where}: {key} grew by {found.get(key, 0)}, not {count}"
            self.that(found.get(key, 0) == count, f"{told}; all: {dict(found)}")
        losses = {key for key in found if key.startswith("dropped_") and found[key]}
        self.that(losses <= expected.keys(), f"{where}: unexpected {sorted(losses - expected.keys())}")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One fault, injected in one run."""

    name: str
    injected: int
    checks: int
    failures: tuple[str, ...]
    not_possible: str
    growth_mb: float
    seconds: float
    recovery: float | None = None

    @property
    def good(self) -> bool:
        return not self.failures

    def record(self) -> dict[str, Any]:
        return {
            "injected": self.injected,
            "checks": self.checks,
            "failures": list(self.failures),
            "not_possible": self.not_possible,
            "memory_growth_mb": round(self.growth_mb, 1),
            "seconds": round(self.seconds, 1),
            **({} if self.recovery is None else {"recovery_s": round(self.recovery, 2)}),
        }
