"""A comparison of two fleets as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lla_fusion_ros.fleet.compare import Comparison, Difference
from lla_fusion_ros.fleet.object_scores import METRICS
from lla_fusion_ros.fleet.page import badges, picture, truth_badge
from lla_fusion_ros.report import html
from lla_fusion_ros.report.html import escape

MOST_CARDS = 60
_MOST_MOVES = 30


def comparison_html(found: Comparison, broken: Sequence[str]) -> str:
    changed = found.other_class
    tiles = [
        ("", f"{found.objects:,}", f"objects of {found.bags:,} bags in both"),
        ("", f"{changed:,}", f"have another class, {changed / max(found.objects, 1):.1%}"),
        ("", f"{sum(found.warnings_gained.values()):,}", "warnings more"),
        ("", f"{sum(found.warnings_lost.values()):,}", "warnings less"),
    ]
    left_out = [
        f"only in {name}: {own['bags']} bags, and {own['objects']} objects of common bags"
        for name, own in (("A", found.only_a), ("B", found.only_b))
        if any(own.values())
    ]
    body = [
        html.heading("What changed", f"A: {found.a} · B: {found.b}"),
        html.tiles(tiles),
        html.notes([*broken, *left_out]),
        _numbers(found),
        _moves(found),
        _objects(found.changed),
        html.folded("Settings that differ", dict(part.split(": ", 1) for part in found.settings)),
    ]
    return html.document("What changed", body)


def number(each: Difference, value: float, signed: bool = False) -> str:
    shares = ("accuracy", "last_accuracy", "missed", "false_alarms", "warned", "other_class")
    form = ("+" if signed else "") + (".2%" if each.name in shares else ".4f")
    return format(value, form)


def _numbers(found: Comparison) -> str:
    rows = []
    for each in found.differences:
        css = {"better": "better", "worse": "worse"}.get(each.verdict, "")
        interval = f"{number(each, each.low, True)} … {number(each, each.high, True)}"
        relative = "–" if each.relative is None else f"{each.relative:+.1%}"
        title = escape(METRICS.get(each.name, ""), quote=True)
        rows.append(
            f"<td title='{title}'>{escape(html.words(each.name))}</td>"
            + "".join(html.cell(number(each, value)) for value in (each.a, each.b))
            + html.cell(number(each, each.change, True), css)
            + html.cell(interval)
            + html.cell(relative)
        )
    head = ("", "A", "B", "B − A", "95% interval", "relative")
    return (
        f"<h2>Numbers</h2><div class='card'>{html.table(head, rows)}<p class='about'>Over objects that both "
        f"have. Intervals draw {found.drawn} again, in pairs (of ECE, bags); coloured where they "
        "do not hold 0.</p></div>"
    )


def _moves(found: Comparison) -> str:
    if not found.moves:
        return ""
    rows = [
        html.cell(each["from"]) + html.cell(each["to"], "text") + html.cell(f"{each['objects']:,}")
        for each in found.moves[:_MOST_MOVES]
    ]
    return f"<h2>Classes</h2><div class='card'>{html.table(('A', 'B', 'objects'), rows)}</div>"


def _objects(changed: Sequence[dict[str, Any]]) -> str:
    if not changed:
        return ""
    cards = "".join(_card(row) for row in changed[:MOST_CARDS])
    more = len(changed) - MOST_CARDS
    left = f"<p class='soft'>{more} more are in the JSON.</p>" if more > 0 else ""
    return (
        "<h2>Objects that changed</h2><p class='about'>Those with another class first, then those with other "
        f"warnings; the largest change of probability first.</p><div class='objects'>{cards}</div>{left}"
    )


def _card(row: dict[str, Any]) -> str:
    old, new = (f"{escape(row[f'class_{s}'])} {row[f'p_{s}']:.0%}" for s in ("a", "b"))
    shown = f"<b>{old} → {new}</b>" if row["class_a"] != row["class_b"] else f"<b>{new}</b>"
    warned = ""
    if row["reasons_a"] != row["reasons_b"]:
        before, after = (badges(row[f"reasons_{side}"]) or "no warning" for side in ("a", "b"))
        warned = f"<br>{before} → {after}"
    image = picture(Path(row["picture"] or ""), row["object"])
    return (
        f"<figure class='object'>{image}<figcaption>{shown}{warned} {truth_badge(row, row['class_b'])}<br>"
        f"{escape(row['bag'])} · {escape(row['object'])}<br>{row['views']} views</figcaption></figure>"
    )
