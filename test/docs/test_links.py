"""The documents point to files that exist, and name commands that can be typed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from lla_fusion_ros.cli.main import find_verbs, parser_of
from lla_fusion_ros.lab.datasets import dataset_names
from support.processes import REPOSITORY

DOCUMENTS = [*sorted(REPOSITORY.glob("*.md")), *sorted((REPOSITORY / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)]*))?\)")
COMMAND = re.compile(r"(?:^|[\s`/])lla-fusion ([a-z][a-z-]*)")
MAKE_TARGET = re.compile(r"`make ([a-z]+)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_every_link_leads_to_a_file_and_a_heading(document: Path):
    for target, anchor in LINK.findall(document.read_text()):
        if "://" not in target:
            page = document.parent / target if target else document
            assert page.exists(), target
            assert not anchor or anchor in anchors_of(page), f"{target}#{anchor}"


def anchors_of(page: Path) -> set[str]:
    """As GitHub makes them from headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_every_command_is_a_verb_and_every_make_target_is_in_the_makefile(document: Path):
    text = document.read_text()
    assert set(COMMAND.findall(text)) <= set(find_verbs())
    rules = set(re.findall(r"^([a-z]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    assert set(MAKE_TARGET.findall(text)) <= rules


def commands_in(text: str) -> list[list[str]]:
    """The lines of `text` that are `lla-fusion VERB ...`, up to a pipe, as a shell would part them."""
    lines = [line.strip().split(" | ")[0] for line in text.replace("\\\n", " ").splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("lla-fusion ")]


def unreadable(text: str) -> list[str]:
    """The commands that the program would refuse at once."""
    verbs, wrong = find_verbs(), []
    for words in commands_in(text):
        try:
            args = parser_of(verbs[words[0]]).parse_args(words[1:])
        except (KeyError, SystemExit):
            wrong.append(shlex.join(words))
            continue
        if getattr(args, "dataset", None) not in (None, *dataset_names()):
            wrong.append(shlex.join(words))
    return wrong


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_every_command_in_a_document_is_read_by_the_program(document: Path):
    assert unreadable(document.read_text()) == []


@pytest.mark.parametrize("verb", find_verbs().values(), ids=lambda verb: verb.name)
def test_every_example_in_a_help_text_is_read_by_the_program(verb):
    assert commands_in(verb.example)
    assert unreadable(verb.example) == []


def test_a_command_with_an_unknown_data_set_or_option_is_found():
    assert unreadable("lla-fusion make-bag --dataset belgium --root data --out van") != []
    assert unreadable("    lla-fusion info --loud BAG") != []
