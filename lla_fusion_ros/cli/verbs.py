"""Which verbs there are, found without importing them: `lla-fusion --help` must not wait for torch.

A verb is a file in this folder with, at its top level,

    NAME = "info"                                   what the user types
    HELP = "tell what is in a bundle or a bag"      one line for the list of verbs
    EXAMPLE = "lla-fusion info models/x.safetensors"   shown at the end of its --help; may have several lines
    EXTRA = "bags"                                  the extra of setup.py that holds what it needs
    def add_arguments(parser: argparse.ArgumentParser) -> None
    def run(args: argparse.Namespace) -> int        the exit code
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Verb:
    """What the dispatcher knows of a verb before it is imported.

    Attributes:
        name: what the user types
        help: one line
        example: command lines for its --help
        module: dotted name of its module
        extra: what to install where a package is missing
    """

    name: str
    help: str
    example: str
    module: str
    extra: str = ""


def find_verbs(folder: Path | None = None) -> dict[str, Verb]:
    """All verbs of the package by name, in the order of their names."""
    verbs = []
    for path in (folder or Path(__file__).parent).glob("*.py"):
        texts = _constant_texts(path.read_text(encoding="utf-8"))
        if "NAME" in texts:
            help_, example, extra = (texts.get(name, "") for name in ("HELP", "EXAMPLE", "EXTRA"))
            verbs.append(Verb(texts["NAME"], help_, example, f"{__package__}.{path.stem}", extra))
    return {verb.name: verb for verb in sorted(verbs, key=lambda verb: verb.name)}


def _constant_texts(source: str) -> dict[str, str]:
    """The top-level assignments of plain strings in a Python source."""
    texts = {}
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            for target in statement.targets:
                if isinstance(target, ast.Name) and isinstance(statement.value.value, str):
                    texts[target.id] = statement.value.value
    return texts
