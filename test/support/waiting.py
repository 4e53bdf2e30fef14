"""Waiting for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable

# Only a stuck test comes near this; a loaded two-core machine needs room.
DEFAULT_TIMEOUT = 120.0


def wait_for(
    condition: Callable[[], object],
    timeout: float = DEFAULT_TIMEOUT,
    what: str = "the condition",
    step: Callable[[], None] = lambda: time.sleep(0.02),
) -> None:
    """Return as soon as `condition()` is true, with `step()` in between; fail after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout:g} s in vain for {what}")
        step()
