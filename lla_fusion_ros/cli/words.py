"""Lists and NAME=VALUE pairs as users type them, and names from files as they may be printed."""

from __future__ import annotations

import json
from typing import Any

from lla_fusion_ros.errors import InputError


def printable(text: str) -> str:
    """Text of one line that may hold names from files: what would steer a terminal is shown as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def words(text: str) -> list[str]:
    """Words separated by commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


def numbers(name: str, text: str) -> list[int]:
    """Whole numbers separated by commas; `name` is the option they belong to."""
    try:
        return [int(word) for word in words(text)]
    except ValueError:
        raise InputError(f"{name} {text!r} is not a list of whole numbers separated by commas") from None


def decimals(name: str, text: str) -> list[float]:
    """Numbers separated by commas; `name` is the option they belong to."""
    try:
        return [float(word) for word in words(text)]
    except ValueError:
        raise InputError(f"{name} {text!r} is not a list of numbers separated by commas") from None


def data_options(pairs: list[str]) -> dict[str, Any]:
    """NAME=VALUE, numbers read as numbers."""
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f"--option {pair!r} must be NAME=VALUE")
        try:
            options[name] = json.loads(value)
        except json.JSONDecodeError:
            options[name] = value
    return options
