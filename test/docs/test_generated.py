"""The generated parts of the pages are what docs/results says, and a new result gets into them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import REPOSITORY, child_environment

RUN = {"injected": 5, "checks": 9, "failures": [], "not_possible": "", "seconds": 3.0}


def make_results(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(REPOSITORY / "tools" / "make_results.py"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=child_environment())


def test_the_pages_are_what_the_results_say():
    answer = make_results("--check")
    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize("failures", [[], ["it crashed"]])
def test_a_new_result_is_compacted_and_told(tmp_path, failures):
    (tmp_path / "results").mkdir()
    page = tmp_path / "robustness.md"
    page.write_text("before\n<!-- generated: faults -->\n<!-- end -->\nafter\n")
    fault = {"name": "a_fault", "injects": "bad things", "expects": "nothing happens"}
    record = {
        "version": "1",
        "machine": {"cpu": "a CPU", "cores": 2, "load": 1.5},
        "runs": 2,
        "always": ["no crash"],
        "faults": [{**fault, "runs": [RUN, {**RUN, "failures": failures}]}],
    }
    new = tmp_path / "faults.json"
    new.write_text(json.dumps(record))
    assert make_results("--docs", tmp_path, "--add", new).returncode == 0
    told = f"2 runs of 1 faults: 10 injections, 18 checks, {len(failures)} failures.\n"
    told += "- **a fault** failed: it crashed\n" * len(failures)
    assert told + "<!-- end -->" in page.read_text()
    assert page.read_text().startswith("before\n") and page.read_text().endswith("after\n")
    assert make_results("--docs", tmp_path, "--check").returncode == 0
    page.write_text(page.read_text().replace("10 inj", "11 inj"))
    assert make_results("--docs", tmp_path, "--check").returncode == 1


def test_commands_in_records_name_no_folder_of_a_machine(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "tools"))
    from make_results import plain_command  # a folder of scripts, not a package

    typed = "lla-fusion evaluate models/gtsrb.safetensors --root /home/me/GTSRB --json /tmp/x.json --draws 10"
    assert plain_command(typed) == "lla-fusion evaluate models/gtsrb.safetensors --root data/GTSRB --draws 10"
    assert plain_command("python /home/me/tools/measure.py x") == "python tools/measure.py x"


def test_a_record_of_whole_drives_becomes_its_tables(tmp_path):
    (tmp_path / "results").mkdir()
    page = tmp_path / "results.md"
    page.write_text(
        "<!-- generated: drives global -->\n<!-- end -->\n<!-- generated: drive-facts -->\n<!-- end -->\n"
    )
    new = tmp_path / "drives.json"
    record = json.loads((REPOSITORY / "docs" / "results" / "drives.json").read_text(encoding="utf-8"))
    record["command"] += " --json /tmp/drives.json"
    default = next(row for row in record["rules"] if row["way"] == "global" and row["default"])
    default["accuracy"], default["sure_wrong"] = 0.123456789, {"stale": 2, "far": 0, "join": 1}
    new.write_text(json.dumps(record))
    assert make_results("--docs", tmp_path, "--add", new).returncode == 0
    kept = json.loads((tmp_path / "results" / "drives.json").read_text(encoding="utf-8"))
    assert "--json" not in kept["command"] and 0.12346 in [row["accuracy"] for row in kept["rules"]]
    told = page.read_text(encoding="utf-8")
    assert f"| **`{default['rule']}`** | .1235 / " in told and "| 3 (2 stale, 1 join) |" in told
    assert "is right more often" in told and "| ordinary, < 14 px |" in told
