"""`--json [FILE]`, the same in every verb: the whole result as one JSON document."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lla_fusion_ros.errors import LlaFusionError

STDOUT = "-"


def add_json_option(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--json",
        nargs="?",
        const=STDOUT,
        type=_place,
        metavar="FILE",
        help="the whole result as one JSON document: on standard output, with nothing else there, or in "
        "FILE (it ends in .json) beside the usual text",
    )


def join_json_file(words: Sequence[str]) -> list[str]:
    """`info --json drive` describes the drive; only what ends in .json is a file for the document."""
    joined = list(words)
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else ""
        if word == "--json" and following != STDOUT and not following.endswith(".json"):
            joined[index] = f"--json={STDOUT}"
    return joined


def write_json(document: Any, place: str | None) -> None:
    """Where the user wants it, if at all."""
    if place is None:
        return
    text = json.dumps(document, indent=1)
    if place == STDOUT:
        print(text)
        return
    try:
        Path(place).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise LlaFusionError(f"'{place}' cannot be written: {error.strerror}") from None


def _place(text: str) -> str:
    """Refused before hours of work, not after them."""
    path = Path(text).absolute()
    if text == STDOUT:
        return text
    if not path.parent.is_dir():
        raise LlaFusionError(f"folder '{path.parent}' of --json does not exist")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise LlaFusionError(f"--json '{text}' cannot be written; name another file")
    return text
