"""The numbers asked of the protocol ensemble, beside what each split of the tracks and each fuser gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

LENGTH = 10
REGIMES = ("clean", "hard", "mixed")
FUSERS = ("pool", "reliable_pool", "dual_pool")
SINGLE_FRAME = 0.975
ACCURACY = {"clean": 0.99, "hard": 0.88, "mixed": 0.985}
ECE = dict.fromkeys(REGIMES, 0.03)
AUROC = {"clean": 0.985, "hard": 0.90, "mixed": 0.97}
HEADER = ("split", "fuser", "clean frame alone", "accuracy", "ECE (exact)", "AUROC of the warning", "all")


def table(records: Sequence[tuple[str, dict[str, Any]]]) -> list[str]:
    """Markdown, one row for each split (named) and fuser; what misses its number is bold."""
    lines = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    lines.append("| " + " | ".join(_asked()) + " |")
    for title, record in records:
        lines += ["| " + " | ".join(row) + " |" for row in _rows(title, record)]
    return [*lines, ""]


def _asked() -> list[str]:
    def listed(limits: dict[str, float], sign: str) -> str:
        return " / ".join(f"{sign} {limits[regime]:g}" for regime in REGIMES)

    return [
        "asked",
        "",
        f"≥ {SINGLE_FRAME:g}",
        listed(ACCURACY, "≥"),
        listed(ECE, "≤"),
        listed(AUROC, "≥"),
        "",
    ]


def _rows(title: str, record: dict[str, Any]) -> Iterator[list[str]]:
    count = record["bundle"]["networks"]
    cells = {(r["fuser"], r["regime"]): r for r in record["results"] if (r["C"], r["L"]) == (count, LENGTH)}
    strange = {
        r["regime"]: r["auroc"]
        for r in record["ood"]
        if (r["score"], r["C"], r["L"]) == ("combined", count, LENGTH)
    }
    alone = [
        r["accuracy"] for r in record.get("single_frame", ()) if (r["regime"], r["C"]) == ("clean", count)
    ]
    for fuser in FUSERS:
        own = {regime: cells[fuser, regime] for regime in REGIMES}
        groups = [
            [_marked(value, value >= SINGLE_FRAME) for value in alone],
            [_marked(own[g]["accuracy"], own[g]["accuracy"] >= ACCURACY[g]) for g in REGIMES],
            [_marked(own[g]["ece"], own[g]["ece"] <= ECE[g], _exact(own[g])) for g in REGIMES],
            [_marked(strange[g], strange[g] >= AUROC[g]) for g in REGIMES],
        ]
        reached = not any("**" in cell for group in groups for cell in group)
        name = f"`{fuser}`" + (" (default)" if fuser == record["default_fuser"] else "")
        cells_of_row = [" / ".join(group) or "–" for group in groups]
        yield [title, name, *cells_of_row, "yes" if reached else "no"]


def _exact(record: dict[str, Any]) -> str:
    least, most = record["ece_if_calibrated"]
    return f" ({least:.3f}–{most:.3f})" if most - least > 5e-4 else f" ({least:.3f})"


def _marked(value: float, reached: bool, note: str = "") -> str:
    """Four digits where three would hide which side of its number it is on."""
    return (f"{value:.4f}" if reached else f"**{value:.4f}**") + note
