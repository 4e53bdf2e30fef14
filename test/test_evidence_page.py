"""docs/evidence.md says what docs/results say."""

import json
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parents[1] / "tools" / "make_evidence.py"


def run_tool(*words):
    return subprocess.run([sys.executable, str(TOOL), *map(str, words)], capture_output=True, text=True)


def test_the_page_is_what_the_results_say():
    answer = run_tool("--check")
    assert answer.returncode == 0, answer.stderr


def test_a_changed_result_is_noticed_and_written(tmp_path):
    page = tmp_path / "evidence.md"
    page.write_text("before\n<!-- table: switch tracks -->\n<!-- end -->\nafter\n")
    found = {"detection_5": 0.5, "detection_15": 0.75, "delay": 3.0}
    record = {"regime": "hard", **found, "false_alarm": 0.01, "at_stated": {**found, "detection_5": 0.25}}
    (tmp_path / "tracks.json").write_text(json.dumps({"switch": [record]}))
    assert run_tool("--page", page, "--results", tmp_path, "--check").returncode == 1
    assert run_tool("--page", page, "--results", tmp_path).returncode == 0
    assert "| hard | .500 | .750 | 3 | .010 | .250 |" in page.read_text()
    assert page.read_text().startswith("before\n") and page.read_text().endswith("after\n")
    assert run_tool("--page", page, "--results", tmp_path, "--check").returncode == 0


def test_results_that_are_not_there_are_said_to_be_missing(tmp_path):
    page = tmp_path / "evidence.md"
    page.write_text("<!-- table: fusers nothing hard:10 -->\n<!-- end -->\n")
    assert run_tool("--page", page, "--results", tmp_path).returncode == 0
    assert "docs/results/nothing.json is missing" in page.read_text()
