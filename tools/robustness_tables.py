"""The generated parts of docs/robustness.md, from docs/results/faults.json and soak.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

SOAK_FIGURE = "robustness-soak.png"
WORDS = {
    "memory_mb": "resident memory",
    "handles": "file handles",
    "threads": "threads",
    "p50_ms": "latency, median",
    "p95_ms": "latency, 95%",
}


def read(results: Path, name: str) -> dict[str, Any] | None:
    """A result, or None where it has not been made."""
    path = results / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def always(results: Path) -> str:
    """What is checked for every fault."""
    document = read(results, "faults")
    if document is None:
        return missing("faults")
    return "".join(f"- {sentence}.\n" for sentence in document["always"])


def faults(results: Path) -> str:
    """fault, times injected, expectation, outcome."""
    document = read(results, "faults")
    if document is None:
        return missing("faults")
    rows = ["| fault | times injected | expectation | outcome |\n|---|---|---|---|\n"]
    for fault in document["faults"]:
        injected = sum(run["injected"] for run in fault["runs"])
        what = f"**{fault['name'].replace('_', ' ')}**: {fault['injects']}"
        rows.append(f"| {what} | {injected} | {fault['expects']} | {outcome(fault['runs'])} |\n")
    return "".join(rows)


def outcome(runs: list[dict[str, Any]]) -> str:
    """How it went, over all runs."""
    failed = [run for run in runs if run["failures"]]
    if failed:
        return f"**failed in {len(failed)} of {len(runs)} runs**: {failed[0]['failures'][0][:200]}"
    impossible = [run["not_possible"] for run in runs if run["not_possible"]]
    if impossible:
        return f"not possible on this machine: {impossible[0]}"
    checks = sum(run["checks"] for run in runs)
    growth = max(run["memory_growth_mb"] for run in runs)
    memory = f"; memory {growth:+.0f} MB at most" if growth else ""
    notes = f"; {runs[-1]['notes'][0]}" if runs[-1]["notes"] else ""
    return f"held in {len(runs)} of {len(runs)} runs, {checks} checks{memory}{notes}"


def summary(results: Path) -> str:
    """The campaign in one paragraph."""
    document = read(results, "faults")
    if document is None:
        return missing("faults")
    runs = [run for fault in document["faults"] for run in fault["runs"]]
    failures = sum(bool(run["failures"]) for run in runs)
    minutes = sum(run["seconds"] for run in runs) / document["runs"] / 60
    injected, checks = (sum(run[key] for run in runs) for key in ("injected", "checks"))
    return (
        f"{document['runs']} consecutive runs of {len(document['faults'])} faults, {minutes:.1f} minutes "
        f"each: {injected} injections, {checks} checks, **{failures} unexplained failures**. "
        f"{_machine(document)}, version {document['version']}.\n"
    )


def soak(results: Path) -> str:
    """Slopes and the balance of frames."""
    document = read(results, "soak")
    if document is None:
        return missing("soak")
    load, account = document["load"], document["balance"]
    lines = [
        f"{load['minutes']:g} minutes, {load['cameras']} cameras at {load['rate']:g} Hz with "
        f"{load['objects']} objects each, model `{load['model']}`; {_machine(document)}.\n\n",
        "| | level | change an hour | 95% interval | |\n|---|---|---|---|---|\n",
    ]
    for name, slope in document["slopes"].items():
        unit = f" {slope['unit']}" if slope["unit"] else ""
        verdict = "flat" if slope["flat"] else "**grows**"
        lines.append(
            f"| {WORDS[name]} | {slope['level']:g}{unit} | {slope['per_hour']:+.3g}{unit} | "
            f"{slope['low']:+.3g} to {slope['high']:+.3g}{unit} | {verdict} |\n"
        )
    parts = [
        ("fused", account["fused_frames"]),
        ("dropped because the networks were behind (`queue_full`)", account["dropped_queue_full"]),
        ("lost by DDS and counted", account["images_lost_by_dds"]),
        ("unused, with a reason for every object", account["unused_frames"] + account["dropped_bad_image"]),
        ("without boxes", account["images_without_detections"]),
        ("still waiting at the end", account["waiting_images"] + account["waiting_frames"]),
    ]
    told = " + ".join(f"{count} {what}" for what, count in parts if count)
    lines.append(f"\n{account['sent']} frames sent = {told}; **{account['uncounted']} uncounted**.\n")
    lines.append(f"\n![Memory, handles and threads, latency and frames of the run](images/{SOAK_FIGURE})\n")
    return "".join(lines)


def _machine(document: dict[str, Any]) -> str:
    return f"{document['machine']['cpu']}, {document['machine']['cores']} cores"


def missing(name: str) -> str:
    return f"*docs/results/{name}.json is missing.*\n"


TABLES: dict[str, Callable[[Path], str]] = {
    "summary": summary,
    "always": always,
    "faults": faults,
    "soak": soak,
}
