"""docs/robustness.md says what docs/results say."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOL = ROOT / "tools" / "make_robustness_page.py"
RUN = {
    "injected": 5,
    "checks": 9,
    "failures": [],
    "notes": [],
    "not_possible": "",
    "memory_growth_mb": 1.2,
    "seconds": 3.0,
}


def run_tool(*words):
    return subprocess.run([sys.executable, str(TOOL), *map(str, words)], capture_output=True, text=True)


def write_faults(folder, *runs):
    fault = {"name": "a_fault", "injects": "bad things", "expects": "good things", "runs": list(runs)}
    document = {
        "version": "1",
        "machine": {"cpu": "a CPU", "cores": 2},
        "runs": len(runs),
        "always": ["no crash"],
        "faults": [fault],
    }
    (folder / "faults.json").write_text(json.dumps(document))


def test_the_page_is_what_the_results_say():
    answer = run_tool("--check")
    assert answer.returncode == 0, answer.stderr


def test_a_changed_result_is_noticed_and_written(tmp_path):
    page = tmp_path / "robustness.md"
    page.write_text("before\n<!-- table: faults -->\n<!-- end -->\nafter\n")
    write_faults(tmp_path, RUN, RUN, RUN)
    assert run_tool("--page", page, "--results", tmp_path, "--check").returncode == 1
    assert run_tool("--page", page, "--results", tmp_path).returncode == 0
    expected = "| **a fault**: bad things | 15 | good things | held in 3 of 3 runs, 27 checks"
    assert expected in page.read_text()
    assert page.read_text().startswith("before\n") and page.read_text().endswith("after\n")
    assert run_tool("--page", page, "--results", tmp_path, "--check").returncode == 0


def test_a_failure_is_told_as_one(tmp_path):
    page = tmp_path / "robustness.md"
    page.write_text("<!-- table: faults -->\n<!-- end -->\n<!-- table: soak -->\n<!-- end -->\n")
    write_faults(tmp_path, RUN, {**RUN, "failures": ["it crashed"]})
    assert run_tool("--page", page, "--results", tmp_path).returncode == 0
    assert "**failed in 1 of 2 runs**: it crashed" in page.read_text()
    assert "docs/results/soak.json is missing" in page.read_text()
