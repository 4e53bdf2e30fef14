"""Refuse what could not be written at the end before the work begins; nothing is touched here."""

from __future__ import annotations

import os
from pathlib import Path

from lla_fusion_ros.errors import InputError


def check_file(option: str, path: Path) -> None:
    """A file can be written there, in a folder that exists."""
    folder = path.absolute().parent
    if path.is_dir():
        raise InputError(f"{option} '{path}' is a folder; name a file")
    if not folder.is_dir():
        raise InputError(f"folder '{folder}' of {option} does not exist")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise InputError(f"{option} '{path}' cannot be written: no permission; name another place")


def check_folder(option: str, path: Path) -> None:
    """A folder is there to write into, or can be made."""
    there = path.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise InputError(f"{option} '{path}' cannot be a folder: '{there}' is a file; name another place")
    if not os.access(there, os.W_OK):
        raise InputError(f"{option} '{path}' cannot be written: no permission; name another place")
