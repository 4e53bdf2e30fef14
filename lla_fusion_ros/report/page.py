"""The report as one HTML text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from lla_fusion_ros.report import html, svg, track_chart
from lla_fusion_ros.report.score_charts import anchor, overview_svg, reliability_svg
from lla_fusion_ros.report.scoring import SINGLE_FRAME, ReplayScores
from lla_fusion_ros.report.tracks import Point, Timeline, TimelineSink

MOST_CARDS = 60
UNSURE = 0.6  # probability of the class shown last
MANY_CHANGES = 3


@dataclass(frozen=True, slots=True)
class ReportInput:
    """Everything the page tells.

    Attributes:
        facts: label and value of the tiles at the top that are not about scores.
        settings, bundle: tables at the end.
        notes: what the reader should know, such as what was lost of a damaged bag.
    """

    title: str
    subtitle: str
    class_names: Sequence[str]
    timelines: TimelineSink
    fuser: str
    facts: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    bundle: Mapping[str, object] = field(default_factory=dict)
    scores: ReplayScores | None = None
    notes: Sequence[str] = ()


def write_report(report: ReportInput, path: Path) -> None:
    html.write_page(report_html(report), path)


def report_html(report: ReportInput) -> str:
    tracks = sorted(report.timelines.tracks.values(), key=lambda track: track.interest, reverse=True)
    tracks = [track for track in tracks if track.points]
    cards = sorted(tracks[:MOST_CARDS], key=lambda track: (track.points[0].stamp, track.id))
    first, last = report.timelines.first or 0, report.timelines.last
    body = [
        html.heading(report.title, report.subtitle),
        _tiles(report),
        html.notes(report.notes),
        _scores(report) if report.scores is not None else "",
    ]
    if cards:
        body.append(
            "<h2>All tracks</h2><div class='card scroll'>" + overview_svg(cards, first, last) + "</div>"
        )
        body.append(_how_to_read(report))
        body.append(_tools(cards))
        body += [_card(track, first, report) for track in cards]
    left_out = len(tracks) - len(cards) + report.timelines.forgotten
    if left_out:
        body.append(f"<p class='soft'>{left_out} further tracks, without warnings, are not shown.</p>")
    body.append(html.folded("Settings", report.settings) + html.folded("Model file", report.bundle))
    names = f"<script type='application/json' id='class-names'>{_json(list(report.class_names))}</script>"
    return html.document(report.title, body, f"{names}<script>{html.asset('script.js')}</script>")


def _tiles(report: ReportInput) -> str:
    tiles = []
    if report.scores is not None:
        single, fused = report.scores.of(SINGLE_FRAME), report.scores.of(report.fuser)
        warnings = report.scores.warnings
        css, worse = _against_single(fused.accuracy - single.accuracy)
        tiles.append(
            (css, f"{single.accuracy:.1%} → {fused.accuracy:.1%}", f"accuracy, single frame → fused{worse}")
        )
        css, worse = _against_single(single.nll - fused.nll)
        tiles.append((css, f"{single.nll:.2f} → {fused.nll:.2f}", f"NLL, single frame → fused{worse}"))
        events = warnings.outside + warnings.switches
        if events:
            css = "bad" if warnings.missed else "good"
            tiles.append((css, f"{warnings.raised} of {events}", "unknown objects and switches found"))
        else:
            tiles.append(("", "none", "unknown objects or switches in the truth"))
        tiles.append(("", f"{warnings.false_alarms} of {warnings.inside}", "false alarms, in tracks"))
        if warnings.changes:
            tiles.append(("", f"{warnings.changes_seen} of {warnings.changes}", "class changes seen"))
        if warnings.cannot_tell:
            tiles.append(("", f"{warnings.cannot_tell}", "tracks of which nobody can tell"))
    tiles += [("", value, label) for label, value in report.facts.items()]
    return html.tiles(tiles)


def _against_single(gain: float) -> tuple[str, str]:
    """How a number that fusion should raise looks, and what is said where it did the contrary."""
    return ("bad", ": worse") if gain < 0 else ("good", "")


def _scores(report: ReportInput) -> str:
    assert report.scores is not None
    single = report.scores.of(SINGLE_FRAME)
    rows = []
    for each in report.scores.fusers:
        css = "used" if each.fuser == report.fuser else ""
        auroc = "–" if each.auroc is None else f"{each.auroc:.3f}"
        rows.append(
            f"<tr class='{css}'><td>{escape(each.fuser)}</td>{_score(each.accuracy, single.accuracy)}"
            f"{_score(each.nll, single.nll, less=True)}{_score(each.ece, single.ece, less=True)}"
            f"<td>{auroc}</td>{_score(each.last_accuracy, single.last_accuracy)}</tr>"
        )
    warnings = report.scores.warnings
    figures = "".join(
        reliability_svg(report.scores.reliability[name], name, report.scores.of(name).ece)
        for name in (SINGLE_FRAME, report.fuser)
    )
    model = (
        ""
        if warnings.ood_auroc is None
        else f" The warning model's own score: AUROC {warnings.ood_auroc:.3f}."
    )
    return (
        "<h2>Scores against the truth</h2><div class='card'><div class='scroll'><table><tr><th>fuser</th>"
        "<th>accuracy</th><th>NLL</th><th>ECE</th><th>AUROC</th><th>last accuracy</th></tr>"
        f"{''.join(rows)}</table></div><p class='about'>Over {report.scores.fusers[0].views} views of known "
        f"objects; AUROC of the entropy for telling unknown objects from known ones.{model} "
        "Last accuracy: of each track its last shown class. ▾: worse than single frames.</p>"
        f"<div class='figures'>{figures}</div></div>"
    )


def _score(value: float, single: float, less: bool = False) -> str:
    """A cell of the table, marked where the number is worse than that of single frames."""
    if value <= single if less else value >= single:
        return f"<td>{value:.3f}</td>"
    return f"<td class='worse' title='worse than single frames'>{value:.3f} ▾</td>"


def _how_to_read(report: ReportInput) -> str:
    truth = (
        " The thin bar below is the truth, hatched for an unknown object." if report.timelines.truth else ""
    )
    return (
        "<h2>Track by track</h2><p class='about'>Narrow bars on top: what each single frame said, by camera; "
        "colour is the class, strength the probability. Below: the fused distribution over all cameras "
        "and frames so far, and its entropy; dashed: the shown class changes. "
        "Bars above and below: a warning, hatched for "
        f"“cannot tell”.{truth} Move over a chart, or focus it and use the arrow keys, to read it.</p>"
    )


def _tools(cards: Sequence[Timeline]) -> str:
    reasons = sorted({reason for track in cards for reason in track.reasons})
    options = "".join(
        f"<option value='{escape(reason)}'>{escape(html.words(reason))}</option>" for reason in reasons
    )
    return (
        "<div class='tools'><input id='find' type='search' placeholder='track or class' aria-label='find'>"
        "<select id='only' aria-label='which tracks'><option value=''>all tracks</option>"
        f"<option value='look'>needs a look</option>{options}</select>"
        "<span id='count' class='soft' role='status'></span></div>"
    )


def _card(track: Timeline, first: int, report: ReportInput) -> str:
    points = sorted(track.points, key=lambda point: point.stamp)
    last = points[-1]
    top = int(last.pmf.argmax())
    names = report.class_names
    badges = "".join(
        f"<span class='badge {'' if reason in ('camera_disagreement', 'cannot_tell') else 'error'}'>"
        f"{escape(html.words(reason))}</span>"
        for reason in track.reasons
    )
    if track.changes:
        badges += f"<span class='badge right'>class change {track.changes}×</span>"
    words = [track.id, names[top]]
    if report.timelines.truth is not None:
        badges += _truth_badge(track, last.stamp, names[top], report, words)
    shown = track_chart.main_classes(track)
    legend = "".join(
        f"<span><i style='background:{svg.class_colour(index)}'></i>{escape(names[index])}</span>"
        for index in shown
    )
    summary = (
        f"{track.views} views · shown class changed {track.flips}× (single frames {track.single_flips}×)"
        f"{f' · warned for {track.warned_views} views' if track.warned_views else ''}"
    )
    if len(track.members) > 1:
        since = (max(track.members.values()) - first) / 1e9
        summary += f" · one object: tracks {', '.join(track.members)}, all joined at {since:.1f} s"
        words += list(track.members)
    kinds = [
        *track.reasons,
        *(["look"] if _needs_a_look(track, last, "class='badge wrong'" in badges) else []),
    ]
    return (
        f"<section class='card track' id='{anchor(track)}' data-kind='{escape(' '.join(kinds))}' "
        f"data-words='{escape(' '.join(words).lower(), quote=True)}'>"
        f"<header><h3>{escape(track.id)}</h3>{badges}"
        f"<span class='now'>{escape(names[top])} <b>{last.pmf[top]:.0%}</b></span></header>"
        f"<div class='scroll'>{track_chart.track_svg(track, first, report.timelines.truth, names)}</div>"
        f"<div class='legend'>{legend}</div><div class='read'>{escape(summary)}</div>"
        f"<script type='application/json'>{_json(_readings(points, first))}</script></section>"
    )


def _needs_a_look(track: Timeline, last: Point, wrong: bool) -> bool:
    """Warned of, wrong, unsure in the end, or of a class that changed again and again."""
    return bool(track.reasons) or wrong or float(last.pmf.max()) < UNSURE or track.flips > MANY_CHANGES


def _truth_badge(track: Timeline, stamp: int, shown: str, report: ReportInput, words: list[str]) -> str:
    truth = report.timelines.truth
    span = truth.class_at(track.track_id, stamp) if truth is not None else None
    if span is None:
        return ""
    name = span.class_name if span.class_name in report.class_names else None
    words.append(span.class_name or "unknown object")
    if name is None:
        return "<span class='badge'>truth: unknown object</span>"
    css = "right" if name == shown else "wrong"
    return f"<span class='badge {css}'>truth: {escape(name)}</span>"


def _readings(points: Sequence, first: int) -> list[list[object]]:
    rows: list[list[object]] = []
    for point in points:
        top = int(point.pmf.argmax())
        why = ", ".join(html.words(reason) for reason in point.reasons)
        single = point.camera, point.single, round(point.single_p, 3)
        fused = top, round(float(point.pmf[top]), 3), round(point.entropy, 3)
        rows.append([round((point.stamp - first) / 1e9, 3), *single, *fused, why])
    return rows


def _json(value: object) -> str:
    """JSON that may stand inside a script element."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
