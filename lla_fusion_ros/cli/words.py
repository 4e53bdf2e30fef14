"""Texts as users type them: lists, NAME=VALUE pairs, places to write to; and names as they may be printed."""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.printable import printable as printable  # for the verbs


class Talk:
    """How much the command line says on the way: below 0 only results and errors, above 0 everything."""

    level = 0


talk = Talk()  # one for the process, set by `-q` and `-v`


def words(text: str) -> list[str]:
    """Words separated by commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


def numbers(name: str, text: str) -> list[int]:
    """Whole numbers separated by commas; `name` is the option they belong to."""
    try:
        return [int(word) for word in words(text)]
    except ValueError:
        raise InputError(f"{name} {text!r} is not a list of whole numbers separated by commas") from None


def shares(name: str, text: str) -> tuple[float, float, float]:
    """Three numbers separated by commas: of training, validation and test."""
    try:
        train, validation, test = (float(word) for word in words(text))
    except ValueError:
        raise InputError(
            f"{name} {text!r} must be three numbers separated by commas: the shares of training, validation "
            "and test, for example 0.7,0.15,0.15"
        ) from None
    return train, validation, test


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


def check_file(option: str, path: Path) -> None:
    """Refuse before the work begins where no file could be written at its end; nothing is touched."""
    folder = path.absolute().parent
    if path.is_dir():
        raise InputError(f"{option} '{path}' is a folder; name a file")
    if not folder.is_dir():
        raise InputError(f"folder '{folder}' of {option} does not exist")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise InputError(f"{option} '{path}' cannot be written: no permission; name another place")


def check_folder(option: str, path: Path) -> None:
    """Refuse where there is no folder to write into and none can be made; nothing is touched."""
    there = path.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise InputError(f"{option} '{path}' cannot be a folder: '{there}' is a file; name another place")
    if not os.access(there, os.W_OK):
        raise InputError(f"{option} '{path}' cannot be written: no permission; name another place")


def check_plots(folder: str | None) -> None:
    """Refuse before hours of work where the figures of `--plots` could not be drawn at its end."""
    if folder:
        check_folder("--plots", Path(folder))
        import_module("matplotlib")
