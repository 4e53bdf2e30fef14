"""Names from outside as they may be shown."""

from __future__ import annotations


def printable(text: str) -> str:
    """Text of one line that may hold names from files: what would steer a terminal is shown as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
