"""The documents point to files that exist, and name commands that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lla_fusion_ros.cli.verbs import find_verbs
from support.processes import REPOSITORY

DOCUMENTS = [*sorted(REPOSITORY.glob("*.md")), *sorted((REPOSITORY / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
COMMAND = re.compile(r"(?:^|[\s`/])lla-fusion ([a-z][a-z-]*)")
MAKE_TARGET = re.compile(r"`make ([a-z]+)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_every_link_leads_to_a_file(document: Path):
    targets = [target for target in LINK.findall(document.read_text()) if "://" not in target]
    assert [target for target in targets if not (document.parent / target).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_every_command_is_a_verb_and_every_make_target_is_in_the_makefile(document: Path):
    text = document.read_text()
    assert set(COMMAND.findall(text)) <= set(find_verbs())
    rules = set(re.findall(r"^([a-z]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    assert set(MAKE_TARGET.findall(text)) <= rules
