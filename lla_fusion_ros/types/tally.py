"""Counts per camera what was received, done and dropped, and why; several threads may write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from threading import Lock

NO_LOSS = {"not_tracked"}  # what is left out by design, and needs no hand


class Tally:
    """Counters by camera; a reason that begins with `dropped_` is a loss."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[str, Counter[str]] = {}

    def add(self, camera: str, what: str, count: int = 1) -> None:
        with self._lock:
            self._counts.setdefault(camera, Counter())[what] += count

    def drop(self, camera: str, reasons: Mapping[str, int]) -> None:
        """Count what is not used by its reason."""
        with self._lock:
            counts = self._counts.setdefault(camera, Counter())
            for reason, count in reasons.items():
                counts[reason if reason in NO_LOSS else f"dropped_{reason}"] += count

    def of(self, camera: str) -> Counter[str]:
        """A copy of one camera's counters."""
        with self._lock:
            return Counter(self._counts.get(camera, ()))

    def total(self) -> Counter[str]:
        """All cameras together."""
        with self._lock:
            return sum(self._counts.values(), Counter())
