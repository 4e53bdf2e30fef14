"""The summary of a fleet as one HTML page."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lla_fusion_ros.fleet.plan import BAGS_FOLDER, PICTURES
from lla_fusion_ros.replay.output_folder import REPORT
from lla_fusion_ros.report import html
from lla_fusion_ros.report.html import escape
from lla_fusion_ros.types.pmf import percent

_SCORES = (
    ("accuracy", "accuracy", "{:.1%}"),
    ("nll", "NLL", "{:.3f}"),
    ("ece", "ECE", "{:.3f}"),
    ("missed", "unknown objects missed", "{:.1%}"),
    ("false_alarms", "false alarms, in known objects", "{:.1%}"),
)
_LISTED = 100  # failures, duplicates and notes; the JSON has all


def summary_html(fleet: Path, summary: Mapping[str, Any]) -> str:
    plan = summary["plan"]
    body = [
        html.heading(
            f"{_many(summary['bags'], 'bag')}, {hours(summary['hours'])} of recording",
            f"fused by {plan['fuser']} · model {plan['model']}",
        ),
        html.tiles(_tiles(summary)),
        _failures(summary),
        _kept(fleet, summary["kept"]),
        _bars("Classes", "objects by their last class", summary["classes"]),
        _warnings(summary),
        _odd(fleet, summary["odd"]),
        _cameras(summary["cameras"]),
        _listing("Notes", {name: "; ".join(notes) for name, notes in summary["notes"].items()}),
        _listing("Bags with the content of another", summary["duplicates"]),
        html.folded("Settings", {**plan["options"], "outputs": plan["outputs"]}),
    ]
    return html.document(f"Fleet of {_many(summary['bags'], 'bag')}", body)


def hours(value: float) -> str:
    return f"{value:.1f} h" if value >= 1 else f"{value * 60:.1f} min"


def picture(path: Path, of: str) -> str:
    """An image that needs no other file; empty where there is none."""
    try:
        data = base64.b64encode(path.read_bytes()).decode()
    except OSError:
        return "<div class='nopicture'></div>"
    return f"<img alt='crop of {escape(of, quote=True)}' src='data:image/jpeg;base64,{data}'>"


def badges(reasons: Sequence[str]) -> str:
    return "".join(f"<span class='badge'>{escape(html.words(reason))}</span>" for reason in reasons)


def truth_badge(row: Mapping[str, Any], shown: str) -> str:
    if row["outside"] is None:
        return ""
    name = row["truth"] or "unknown object"
    css = "" if row["truth"] is None else "right" if row["truth"] == shown else "wrong"
    return f"<span class='badge {css}'>truth: {escape(name)}</span>"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _tiles(summary: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    objects, warned = summary["objects"], summary["warned"]
    tiles = [
        ("", f"{objects:,}", f"objects, {summary['objects_per_hour']:.0f} per hour"),
        ("", f"{warned:,}", f"objects warned of, {warned / objects if objects else 0:.1%}"),
        ("", f"{summary['views']:,}", f"views in {summary['frames']:,} frames"),
        ("bad" if summary["failed"] else "good", f"{len(summary['failed'])}", "bags failed"),
    ]
    if summary["kept"]:
        tiles.append(("bad", f"{len(summary['kept'])}", "bags with results of an earlier run"))
    if scores := summary["scores"]:
        tiles += [
            ("", form.format(scores[name]), label)
            for name, label, form in _SCORES
            if scores[name] is not None
        ]
    return tiles


def _failures(summary: Mapping[str, Any]) -> str:
    failed = summary["failed"]
    if not failed:
        return ""
    rows = [html.cell(path, "text") + html.cell(why, "text") for path, why in list(failed.items())[:_LISTED]]
    more = f"<p class='soft'>and {len(failed) - _LISTED} more</p>" if len(failed) > _LISTED else ""
    return f"<h2>Bags that failed</h2><div class='card'>{html.table(('bag', 'reason'), rows)}{more}</div>"


def _kept(fleet: Path, kept: Mapping[str, Mapping[str, str]]) -> str:
    if not kept:
        return ""
    rows = [
        f"<td>{_linked(fleet, name, name)}</td>"
        + html.cell(each["path"], "text")
        + html.cell(each["why"], "text")
        for name, each in list(kept.items())[:_LISTED]
    ]
    more = f"<p class='soft'>and {len(kept) - _LISTED} more</p>" if len(kept) > _LISTED else ""
    return (
        "<h2>Results of an earlier run</h2><p class='about'>They count in all numbers of this page. Run the "
        "same command again once the bags can be read.</p><div class='card'>"
        f"{html.table(('results', 'bag', 'why they are kept'), rows)}{more}</div>"
    )


def _linked(fleet: Path, bag: str, shown: str) -> str:
    """Text as a link to the report of a bag, where there is one."""
    report = Path(BAGS_FOLDER) / bag / REPORT
    return (
        f"<a href='{quote(report.as_posix())}'>{escape(shown)}</a>"
        if (fleet / report).exists()
        else escape(shown)
    )


def _bars(title: str, about: str, counts: Mapping[str, int]) -> str:
    """Names, bars and numbers."""
    if not counts:
        return ""
    most = max(counts.values())
    rows = "".join(
        f"<span>{escape(name)}</span><i><b style='width:{100 * count / most:.1f}%'></b></i>"
        f"<span>{count:,}</span>"
        for name, count in counts.items()
    )
    return (
        f"<h2>{escape(title)}</h2><div class='card'><p class='about'>{escape(about)}</p>"
        f"<div class='bars'>{rows}</div></div>"
    )


def _warnings(summary: Mapping[str, Any]) -> str:
    rows = [
        html.cell(html.words(reason))
        + html.cell(f"{each['objects']:,}")
        + html.cell(f"{each['per_hour']:.1f}")
        for reason, each in summary["warnings"].items()
    ]
    if not rows:
        return "<h2>Warnings</h2><p class='soft'>none</p>"
    return f"<h2>Warnings</h2><div class='card'>{html.table(('reason', 'objects', 'per hour'), rows)}</div>"


def _odd(fleet: Path, objects: Sequence[Mapping[str, Any]]) -> str:
    if not objects:
        return ""
    cards = []
    for row in objects:
        folder = Path(BAGS_FOLDER) / row["bag"]
        name = _linked(fleet, row["bag"], f"{row['bag']} · {row['object']}")
        image = picture(fleet / folder / PICTURES / (row["picture"] or ""), row["object"])
        when = datetime.fromtimestamp(row["first"] / 1e9, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
        cards.append(
            f"<figure class='object'>{image}<figcaption>"
            f"<b>{escape(row['fused_class'])} {escape(percent(row['fused_p']))}</b> "
            f"{badges(row['reasons'])}"
            f"{truth_badge(row, row['fused_class'])}<br>{name}<br>{row['views']} views · {when}"
            "</figcaption></figure>"
        )
    return (
        "<h2>Oddest objects</h2><p class='about'>Objects that were warned of, then those that look least "
        f"like what the model knows.</p><div class='objects'>{''.join(cards)}</div>"
    )


def _cameras(cameras: Mapping[str, Mapping[str, Any]]) -> str:
    rows = []
    for name, each in cameras.items():
        losses = ", ".join(f"{count:,} {html.words(why)}" for why, count in each["losses"].items())
        numbers = "".join(html.cell(f"{each[key]:,}") for key in ("bags", "frames", "crops"))
        rows.append(
            html.cell(name) + numbers + html.cell(f"{each['dropped']:,}", "worse" if each["dropped"] else "")
            + html.cell(losses or "–", "text")
        )  # fmt: skip
    head = ("camera", "bags", "frames", "crops", "lost", "why")
    return f"<h2>Cameras</h2><div class='card'>{html.table(head, rows)}</div>" if rows else ""


def _listing(title: str, rows: Mapping[str, str]) -> str:
    shown = dict(list(rows.items())[:_LISTED])
    if len(rows) > _LISTED:
        shown["…"] = f"and {len(rows) - _LISTED} more, in summary.json"
    return html.folded(f"{title} ({len(rows)})", shown)
