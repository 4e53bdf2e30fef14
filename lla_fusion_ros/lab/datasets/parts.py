"""The parts into which some data sets come divided."""

from __future__ import annotations

from typing import Literal

from lla_fusion_ros.types.errors import InputError

Part = Literal["train", "test", "all"]


def parts_of(part: Part) -> tuple[Literal["train", "test"], ...]:
    """The parts that a word stands for."""
    parts: dict[str, tuple[Literal["train", "test"], ...]] = {
        "train": ("train",),
        "test": ("test",),
        "all": ("train", "test"),
    }
    if part not in parts:
        raise InputError(f"part '{part}' is unknown, expected one of {', '.join(parts)}")
    return parts[part]
