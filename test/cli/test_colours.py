"""Colours: none where NO_COLOR asks for that, and no escapes at all where nobody looks at a terminal."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from replay.scenes import START, write_scene

from lla_fusion_ros.bundle import save_bundle
from lla_fusion_ros.cli.demo_screen import DemoScreen
from lla_fusion_ros.cli.main import find_verbs, main
from lla_fusion_ros.report.truth import Truth, TruthSpan, write_truth
from support.tiny_bundle import tiny_bundle

COLOUR = re.compile(r"\x1b\[[0-9;]*\b(3[0-8]|4[0-8]|9[0-7]|10[0-7])[0-9;]*m")


@pytest.fixture
def commands(tmp_path, monkeypatch) -> list[list[str]]:
    """One of every verb that is quick, with its bars, tables and sentences; of the others their refusal."""
    monkeypatch.chdir(tmp_path)
    save_bundle(tiny_bundle(), tmp_path / "tiny.safetensors")
    write_scene(tmp_path / "drive", frames=4)
    write_truth(
        Truth({f"track {i}": (TruthSpan(START, f"class {i}"),) for i in range(3)}, "toy"),
        tmp_path / "truth.json",
    )
    replay = ["replay", "drive", "--bundle", "tiny.safetensors", "--set", "identity=global", "--no-bag"]
    return [
        [*replay, "--truth", "truth.json", "--out", "fused", "--overwrite"],
        ["make-bag", "--drive", "--duration", "0.3", "--out", "made", "--overwrite"],
        ["info", "tiny.safetensors"],
        ["info", "drive"],
        ["completion", "bash"],
        ["compare", "nothing", "nowhere"],
        *([verb] for verb in ("calibrate", "evaluate", "export", "import", "reproduce", "train", "nonsense")),
        *([verb, "--help"] for verb in find_verbs()),
    ]


def said(commands: list[list[str]], capfd) -> str:
    for words in commands:
        with suppress(SystemExit):  # argparse's way out
            main(words)
    with DemoScreen(quiet=False) as screen:
        screen.tell("made [red]/a/folder[/nonsense]")
    shown = capfd.readouterr()
    assert "made [red]/a/folder[/nonsense]" in shown.out
    return shown.out + shown.err


def test_a_terminal_is_spared_colours_where_asked_for(commands, capfd, monkeypatch):
    for name, value in {"FORCE_COLOR": "1", "TTY_COMPATIBLE": "1", "TERM": "xterm-256color"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert COLOUR.search(said(commands, capfd)), "there are colours to be left out"
    monkeypatch.setenv("NO_COLOR", "1")
    assert not COLOUR.search(said(commands, capfd))


def test_a_file_gets_no_escapes(commands, capfd, monkeypatch):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    assert "\x1b" not in said(commands, capfd)
