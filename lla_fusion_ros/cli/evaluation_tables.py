"""The tables of `lla-fusion evaluate` on a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table


def print_tables(document: dict[str, Any]) -> None:
    """Every fuser at one length with all networks; then the warnings."""
    console = Console(highlight=False)
    lengths = sorted({record["L"] for record in document["results"]})
    length = 10 if 10 in lengths else lengths[-1]
    console.print(_fusers(document, length))
    if document["ood"]:
        console.print(_strangers(document, length))
    if document["switch"]:
        console.print(_switches(document))


def _fusers(document: dict[str, Any], length: int) -> Table:
    count = max(record["C"] for record in document["results"])
    chosen = [r for r in document["results"] if r["C"] == count and r["L"] == length]
    regimes = list(dict.fromkeys(r["regime"] for r in chosen))
    table = Table(
        title=f"{document['tracks']} tracks ({document['draws']} draws where degraded), {count} networks, "
        f"{length} frames: accuracy / NLL / ECE (ECE of exact confidences) / flips",
        title_justify="left",
    )
    table.add_column("fuser")
    for regime in regimes:
        table.add_column(regime, justify="right")
    table.add_column("NLL / pool, all regimes", justify="right")
    cells = {(r["fuser"], r["regime"]): r for r in chosen}
    shortest = max(r["L_from"] for r in document["comparisons"] if r["L_from"] <= min(length, 10))
    ratios = {
        r["fuser"]: r for r in document["comparisons"]
        if (r["regime"], r["C"], r["L_from"]) == ("all", count, shortest) and "nll_over_pool" in r
    }  # fmt: skip
    names = {r["fuser"] for r in chosen}
    for name in sorted(names, key=lambda n: (sum(cells[n, g]["nll"] for g in regimes), n)):
        row = [f"{name} *" if name == document["default_fuser"] else name]
        for regime in regimes:
            r = cells[name, regime]
            exact = r["ece_if_calibrated"][0]
            ece = f"{r['ece']:.3f} ({exact:.3f})"
            row.append(f"{r['accuracy']:.3f} / {r['nll']:.3f} / {ece} / {r['flips']:.2f}")
        row.append(_with_interval(ratios[name], "nll_over_pool") if name in ratios else "")
        table.add_row(*row)
    alone = ", ".join(
        f"{r['regime']} {r['accuracy']:.3f}" for r in document["single_frame"] if r["C"] == count
    )
    table.caption = (
        f"* the bundle's default; the last column pools L of {shortest} and more, 95% interval over tracks\n"
        f"every frame alone: {alone} right"
    )
    return table


def _with_interval(record: dict[str, Any], key: str) -> str:
    low, high = record[f"{key}_interval"]
    return f"{record[key]:.3f} [{low:.3f}, {high:.3f}]"


def _strangers(document: dict[str, Any], length: int) -> Table:
    count = max(record["C"] for record in document["ood"])
    chosen = [r for r in document["ood"] if r["C"] == count and r["L"] == length]
    regimes = list(dict.fromkeys(r["regime"] for r in chosen))
    table = Table(
        title=f"{document['outside_tracks']} unknown tracks, {length} frames: AUROC / AUPR / FPR at 95%",
        title_justify="left",
    )
    table.add_column("score")
    for regime in regimes:
        table.add_column(regime, justify="right")
    for score in dict.fromkeys(r["score"] for r in chosen):
        own = {r["regime"]: r for r in chosen if r["score"] == score}
        numbers = [f"{own[g]['auroc']:.3f} / {own[g]['aupr']:.3f} / {own[g]['fpr95']:.3f}" for g in regimes]
        table.add_row(score, *numbers)
    return table


def _switches(document: dict[str, Any]) -> Table:
    table = Table(title="identity switches found, by the bundle's threshold", title_justify="left")
    for name in ("regime", "within 5 frames", "within 15", "median delay", "false alarms per track"):
        table.add_column(name, justify="left" if name == "regime" else "right")
    for r in document["switch"]:
        delay = "-" if r["delay"] is None else f"{r['delay']:.0f}"
        table.add_row(
            r["regime"],
            f"{r['detection_5']:.3f}",
            f"{r['detection_15']:.3f}",
            delay,
            f"{r['false_alarm']:.3f}",
        )
    return table
