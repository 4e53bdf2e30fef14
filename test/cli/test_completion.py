"""What shells complete, asked of the shells themselves where they are installed."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from lla_fusion_ros.cli.main import main


def completed(line: str, script: str) -> set[str]:
    """What bash offers for the last word of a line."""
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    asks = (
        f"{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; "
        "_lla_fusion; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(["bash", "-c", asks], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_bash_completes_verbs_options_and_files(capsys, tmp_path, monkeypatch):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert completed("lla-fusion re", script) == {"replay", "reproduce"}
    assert "--truth" in completed("lla-fusion replay --t", script)
    assert "--epochs" not in completed("lla-fusion replay --e", script)
    (tmp_path / "drive.mcap").touch()
    monkeypatch.chdir(tmp_path)
    assert completed("lla-fusion replay dr", script) == {"drive.mcap"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_their_script(shell, capsys, tmp_path):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "replay" in script and "truth" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    file = tmp_path / "script"
    file.write_text(script)
    subprocess.run([shell, "-n", str(file)], check=True)
