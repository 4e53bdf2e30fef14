#!/usr/bin/env python3
"""Write the generated parts of README.md and the pages in docs/ from docs/results/*.json and models/.

They stand between `<!-- generated: NAME ARGUMENTS -->` and `<!-- end -->`; the prose is left alone.

Example:
    python tools/make_results.py                   # rewrite them
    python tools/make_results.py --check           # exit with 1 where a page is not what the results say
    python tools/make_results.py --add gtsrb.json  # first take a new record into docs/results
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

from result_tables import TABLES, Results

DOCS = Path(__file__).resolve().parents[1] / "docs"
MARK = re.compile(r"(<!-- generated: (?P<what>[^\n]+?) -->\n).*?(<!-- end -->)", re.DOTALL)
SAFETY_KEYS = (
    "contradiction_median",
    "contradiction_high",
    "cameras_high",
    "followed",
    "odd_high",
    "nll_rise",
    "least_doubt",
)
SET_KEYS, BOUND_KEYS = ("held", "least", "mean_size"), ("error", "mean_bound", "brier", "worst_excess")
Record = dict[str, Any]

FUSERS = ("last", "mean_pmf", "product", "wls", "ella", "pool", "evidence_pool")
LENGTHS = (1, 3, 10, 30)
OOD_SCORES = ("fused entropy", "energy", "combined")
OOD_LENGTHS = (3, 10)
METHODS = (
    "temperature_scaling", "deep_ensemble", "deep_ensemble_scaled", "lla", "fusion", "fusion_cross", "ella",
    "fusion_scaled",
)  # fmt: skip
DROPPED_OPTIONS = ("--json", "--plots", "--cache", "--threads", "--figure")


def rendered(page: str, results: Results) -> str:
    """The page with its generated parts renewed."""

    def part(match: re.Match[str]) -> str:
        name, *arguments = match["what"].split()
        if name not in TABLES:
            raise SystemExit(f"there is no table '{name}'; known are {', '.join(TABLES)}")
        return match[1] + TABLES[name](results, *arguments) + match[3]

    return MARK.sub(part, page)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the pages (docs)")
    parser.add_argument("--add", type=Path, nargs="+", default=(), metavar="FILE", help="records of new runs")
    parser.add_argument(
        "--check", action="store_true", help="change nothing, say which pages are out of date"
    )
    args = parser.parse_args()
    for file in args.add:
        write_record(compact(json.loads(file.read_text(encoding="utf-8"))), args.docs / "results" / file.name)
    results, old = Results(args.docs / "results"), []
    for page in [*sorted(args.docs.glob("*.md")), *args.docs.parent.glob("README.md")]:
        text = page.read_text(encoding="utf-8")
        made = rendered(text, results)
        if made != text:
            old.append(page)
            if not args.check:
                page.write_text(made, encoding="utf-8")
    if args.check:
        for page in old:
            print(f"{page} is not what docs/results says; run tools/make_results.py", file=sys.stderr)
    return int(args.check and bool(old))


def compact(record: Record) -> Record:
    """The part of a record that the pages are made from; told by its keys what it is."""
    if "comparisons" in record:
        return _evaluation(record)
    if record.get("experiment") == "cameratraps":
        kept = {key: record[key] for key in ("experiment", "seeds", "tracks", "sites", "version")}
        rows = [
            {**row, **{k: _rounded(row[k], *row[k]) for k in ("mean", "spread")}} for row in record["table"]
        ]
        return {"command": plain_command(record["command"]), **kept, "table": rows}
    if "experiment" in record:
        return _reproduction(record)
    if "slopes" in record:
        return _with_machine(record, "load", "balance", "slopes")
    if "always" in record:
        return _faults(record)
    if "machine" in record:  # of the benchmark
        return _with_machine(record, "fusion", "price", "memory")
    if "drives" in record:
        return {**_shortened(record), "command": plain_command(record["command"])}
    if "bundle" in record:  # of measure_misses.py
        return {**record, "command": plain_command(record["command"])}
    raise SystemExit(f"a record with the keys {', '.join(record)} is of no known kind")


def write_record(record: Record, path: Path) -> None:
    """One entry of a list a line, so that differences can be read."""
    parts = []
    for key, value in record.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in value)
            parts.append(f" {json.dumps(key)}: [\n  {rows}\n ]")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def plain_command(command: str) -> str:
    """A command that others can type: data sets in data/, tools in tools/, no files to write."""
    words, kept = iter(shlex.split(command)), []
    for word in words:
        if word in DROPPED_OPTIONS:
            next(words)
        elif word.endswith(".py"):
            kept.append(f"tools/{Path(word).name}")
        elif word.startswith("/"):
            kept.append(f"data/{Path(word).name}")
        else:
            kept.append(word)
    return shlex.join(kept)


def _evaluation(record: Record) -> Record:
    networks = record["bundle"]["networks"]
    shown = {*FUSERS, record["default_fuser"]}
    longest = max(row["L"] for row in record["results"])
    start = max(row["L_from"] for row in record["comparisons"])
    return {
        "command": plain_command(record["command"]),
        "bundle": record["bundle"],
        "dataset": record["dataset"]["name"],
        "version": record["version"],
        **{key: record[key] for key in ("default_fuser", "tracks", "outside_tracks", "draws")},
        "results": [
            {
                **{key: row[key] for key in ("fuser", "regime", "L")},
                **_rounded(row, "accuracy", "accuracy_interval", "nll", "ece", "flips"),
            }
            for row in record["results"]
            if row["C"] == networks and row["fuser"] in shown and row["L"] in (*LENGTHS, longest)
        ],
        "single_frame": {
            row["regime"]: round(row["accuracy"], 4)
            for row in record.get("single_frame", ())
            if row["C"] == networks
        },
        "L_from": start,
        "over_pool": [
            {"fuser": row["fuser"], **_rounded(row, "nll_over_pool", "nll_over_pool_interval")}
            for row in record["comparisons"]
            if (row["regime"], row["C"], row["L_from"]) == ("all", networks, start) and row["fuser"] in shown
        ],
        "ood": [
            {
                **{key: row[key] for key in ("score", "regime", "L")},
                **_rounded(row, "auroc", "fpr95"),
            }
            for row in record["ood"]
            if row["C"] == networks and row["score"] in OOD_SCORES and row["L"] in OOD_LENGTHS
        ],
        "switch": [
            {"regime": row["regime"], **_rounded(row, "detection_5", "detection_15", "false_alarm")}
            for row in record["switch"]
        ],
        "conditions": record.get("conditions", []),
        "sets": [
            {**{key: row[key] for key in ("regime", "views_from", "promised")}, **_rounded(row, *SET_KEYS)}
            for row in record.get("sets", ())
        ],
        "bounds": [{**row, **_rounded(row, *BOUND_KEYS)} for row in record.get("bounds", ())],
        "changes": record.get("changes", []),
        "safety": [
            {"fuser": row["fuser"], "regime": row["regime"], **_rounded(row, *SAFETY_KEYS)}
            for row in record.get("safety", ())
        ],
    }


def _reproduction(record: Record) -> Record:
    kept = ("experiment", "networks", "epochs", "seeds", "version")
    rows = [
        {
            "method": row["method"],
            "title": row["title"].partition(" (")[0],
            **{
                name: [round(score["mean"], 5), round(score["spread"], 5), score["paper"]]
                for name, score in row["scores"].items()
                if name in ("accuracy", "nll", "brier", "ece", "auroc")
            },
        }
        for row in record["table"]
        if row["method"] in METHODS
    ]
    command = plain_command(record["command"])
    return {"command": command, **{key: record[key] for key in kept}, "table": rows}


def _faults(record: Record) -> Record:
    runs = [run for fault in record["faults"] for run in fault["runs"]]
    faults = [
        {
            "name": fault["name"],
            "expects": fault["expects"],
            "injected": sum(run["injected"] for run in fault["runs"]),
            "checks": sum(run["checks"] for run in fault["runs"]),
            "failures": [sentence for run in fault["runs"] for sentence in run["failures"]],
            "not_possible": next((run["not_possible"] for run in fault["runs"] if run["not_possible"]), ""),
        }
        for fault in record["faults"]
    ]
    minutes = round(sum(run["seconds"] for run in runs) / record["runs"] / 60, 1)
    recovery = max((run["recovery_s"] for run in runs if "recovery_s" in run), default=None)
    told = {"minutes": minutes, "recovery_s": recovery, "faults": faults}
    return {**_with_machine(record, "runs"), **told}


def _shortened(value: Any) -> Any:
    """The same with five digits of every number."""
    if isinstance(value, dict):
        return {key: _shortened(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_shortened(part) for part in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def _with_machine(record: Record, *keys: str) -> Record:
    # the load says how far to trust a time
    machine = {key: record["machine"][key] for key in ("cpu", "cores", "load") if key in record["machine"]}
    kept = {key: record[key] for key in keys if key in record}
    return {"version": record["version"], "machine": machine, **kept}


def _rounded(row: Record, *keys: str) -> Record:
    return {
        key: [round(value, 4) for value in row[key]] if isinstance(row[key], list) else round(row[key], 4)
        for key in keys
    }


if __name__ == "__main__":
    sys.exit(main())
