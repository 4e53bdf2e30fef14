"""The tables that verbs print: a replay's scores, an evaluation, the paper's experiments."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from lla_fusion_ros.report.scoring import ReplayScores

DETECTION = ("delta_entropy", "auroc", "aupr")
# Two short lines where one would be cut off at 80 columns.
HEADERS = {
    "accuracy": "acc.",
    "mass": "Σ p\n(10³)",
    "ece_paper": "ECE,\npaper",
    "delta_entropy": "ΔE (10³)",
}


def _table(title: str | None, columns: Sequence[str], left: int = 1, **look: Any) -> Table:
    """An empty table; all columns but the first `left` hold numbers."""
    table = Table(title=title, title_justify="left", **look)
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place < left else "right", overflow="fold")
    return table


def print_replay_scores(scores: ReplayScores, used: str) -> None:
    """The scores as a table on standard output."""
    columns = ("fuser", "accuracy", "NLL", "ECE", "AUROC", "last accuracy")
    table = _table(None, columns, box=None, header_style="bold")
    for row in scores.fusers:
        auroc = "-" if row.auroc is None else f"{row.auroc:.3f}"
        cells = (f"{row.accuracy:.3f}", f"{row.nll:.3f}", f"{row.ece:.3f}", auroc, f"{row.last_accuracy:.3f}")
        table.add_row(row.fuser, *cells, style="bold green" if row.fuser == used else None)
    Console(file=sys.stdout).print(table)
    print(scores.remark(used))
    warnings = scores.warnings
    parts = [f"false alarms on {warnings.false_alarms} of {warnings.inside} ordinary tracks"]
    if warnings.switches:
        parts.insert(0, f"{warnings.switches_seen} of {warnings.switches} identity switches seen")
    if warnings.outside:
        parts.insert(0, f"{warnings.outside_warned} of {warnings.outside} unknown objects found")
    print(f"warnings: {', '.join(parts)}")


def print_evaluation(document: dict[str, Any]) -> None:
    """Every fuser at one length with all networks; then the warnings."""
    console = Console(highlight=False)
    lengths = sorted({record["L"] for record in document["results"]})
    length = 10 if 10 in lengths else lengths[-1]
    console.print(_fusers(document, length))
    if document["ood"]:
        console.print(_strangers(document, length))
    if document["switch"]:
        console.print(_switches(document))
    if document["safety"]:
        console.print(_safety(document))
    if document["conditions"]:
        console.print(_conditions(document))
    for key, make in (("sets", _sets), ("bounds", _bounds), ("changes", _changes)):
        if document[key]:
            console.print(make(document))


def _sets(document: dict[str, Any]) -> Table:
    title = "sets that hold the true class in every frame: promised, found, least by chance; classes in them"
    table = _table(title, ("regime", "from views", "promised", "objects", "held", "least", "mean size"))
    for r in document["sets"]:
        shares = (f"{r['promised']:.1%}", str(r["objects"]), f"{r['held']:.1%}", f"{r['least']:.1%}")
        table.add_row(r["regime"], str(r["views_from"]), *shares, f"{r['mean_size']:.2f}")
    return table


def _bounds(document: dict[str, Any]) -> Table:
    title = "bounds of the error, every frame of every track; Brier score of 'this class is right'"
    columns = ("regime", "bounds by", "error", "mean bound", "Brier", "worst excess")
    table = _table(title, columns, left=2)
    for r in document["bounds"]:
        numbers = (f"{r[key]:.4f}" for key in ("error", "mean_bound", "brier", "worst_excess"))
        table.add_row(r["regime"], r["bounds"], *numbers)
    return table


def _changes(document: dict[str, Any]) -> Table:
    title = "changes under one id"
    columns = (
        "shown",
        "pairs",
        "frames",
        "restarts",
        "class changes",
        "sure of the wrong one",
        "unwarned",
        "followed",
    )
    table = _table(title, columns)
    for r in document["changes"]:
        keys = ("pairs", "frames", "restarts", "class_changes", "sure_of_the_wrong_one", "and_unwarned")
        followed = "" if r["followed"] is None else f"{r['followed']:.1%}"
        table.add_row(r["scenario"], *(str(r[key]) for key in keys), followed)
    return table


def _conditions(document: dict[str, Any]) -> Table:
    title = "tracks ever called unknown, or else that cannot be told; that end sure (p >= .9) and unwarned"
    columns = ("tracks of", "condition", "tracks", "unknown", "cannot tell", "sure, unwarned", "right")
    table = _table(title, columns, left=2)
    for r in document["conditions"]:
        names = ("unknown", "cannot_tell", "sure", "right") if r["tracks_of"] == "known" else (
            "unknown", "cannot_tell", "sure",
        )  # fmt: skip
        shares = (f"{r[name] / max(r['tracks'], 1):.1%}" for name in names)
        table.add_row(r["tracks_of"], r["condition"], str(r["tracks"]), *shares)
    return table


def _safety(document: dict[str, Any]) -> Table:
    title = (
        "sure opposite views: median p, p > .9, of two cameras p > .9, followed; an odd frame: p > .9; "
        "one frame 200 times; least 1 - p"
    )
    columns = (
        "fuser",
        "regime",
        "median p",
        "p > .9",
        "cameras > .9",
        "followed",
        "odd > .9",
        "certainty",
        "NLL",
        "1 - p",
        "safe",
    )
    table = _table(title, columns, left=2)
    for r in document["safety"]:
        shares = (f"{r[name]:.1%}" for name in ("contradiction_high", "cameras_high", "followed", "odd_high"))
        sure = (f"{r['contradiction_median']:.3f}", *shares)
        rise = (f"{r['certainty_rise']:+.3f}", f"{r['nll_rise']:+.3f}", f"{r['least_doubt']:.1e}")
        table.add_row(r["fuser"], r["regime"], *sure, *rise, "no" if r["faults"] else "yes")
    return table


def _fusers(document: dict[str, Any], length: int) -> Table:
    count = max(record["C"] for record in document["results"])
    chosen = [r for r in document["results"] if r["C"] == count and r["L"] == length]
    regimes = list(dict.fromkeys(r["regime"] for r in chosen))
    title = (
        f"{document['tracks']} tracks ({document['draws']} draws where degraded), {count} networks, "
        f"{length} frames: accuracy / NLL / ECE (ECE of exact confidences) / flips"
    )
    table = _table(title, ("fuser", *regimes, "NLL / pool, all regimes"))
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
    title = f"{document['outside_tracks']} unknown tracks, {length} frames: AUROC / AUPR / FPR at 95%"
    table = _table(title, ("score", *regimes))
    for score in dict.fromkeys(r["score"] for r in chosen):
        own = {r["regime"]: r for r in chosen if r["score"] == score}
        numbers = [f"{own[g]['auroc']:.3f} / {own[g]['aupr']:.3f} / {own[g]['fpr95']:.3f}" for g in regimes]
        table.add_row(score, *numbers)
    return table


def _switches(document: dict[str, Any]) -> Table:
    columns = ("regime", "within 5 frames", "within 15", "median delay", "false alarms per track")
    table = _table("identity switches found, by the bundle's threshold", columns)
    for r in document["switch"]:
        delay = "-" if r["delay"] is None else f"{r['delay']:.0f}"
        found = (f"{r['detection_5']:.3f}", f"{r['detection_15']:.3f}", delay, f"{r['false_alarm']:.3f}")
        table.add_row(r["regime"], *found)
    return table


def print_paper_tables(document: dict[str, Any]) -> None:
    """Table 1 and, where something outside was scored, table 2."""
    scores = [name for name in document["table"][0]["scores"] if name != "confidence"]  # seven do not fit
    for number, names in (
        (1, [n for n in scores if n not in DETECTION]),
        (2, [n for n in scores if n in DETECTION]),
    ):
        if not names:
            continue
        title = (
            f"table {number}: {document['experiment']}, {document['networks']} networks, "
            f"{document['epochs']} epochs, {len(document['seeds'])} seeds; mean ± spread (paper)"
        )
        table = _table(title, ("method", *(HEADERS.get(name, name) for name in names)))
        for row in document["table"]:
            table.add_row(
                row["method"].replace("_", " "), *(_paper_cell(row["scores"][name]) for name in names)
            )
        Console(highlight=False).print(table)


def _paper_cell(score: dict[str, Any]) -> str:
    """Under each other: mean, spread, and the paper's value; so a table of six scores fits 80 columns."""
    printed = "" if score["paper"] is None else f"\n({score['paper']:g})"
    return f"{score['mean']:.4f}\n±{score['spread']:.4f}{printed}"


def print_camera_traps(document: dict[str, Any]) -> None:
    """Whole sequences by way and split; shorter ones are in the document."""
    names = ("accuracy", "nll", "brier", "ece", "auroc", "auroc_near", "set_held", "set_size", "bound")
    title = f"camera traps: {document['tracks']} sequences, {len(document['seeds'])} folds; mean ± spread"
    table = _table(title, ("way", "split by", "fuser", *names), left=3)
    for row in (each for each in document["table"] if each["L"] == "all"):
        cells = [f"{row['mean'][n]:.3f}\n±{row['spread'][n]:.3f}" if n in row["mean"] else "" for n in names]
        table.add_row(row["way"], row["by"], row["fuser"], *cells)
    Console(highlight=False).print(table)
