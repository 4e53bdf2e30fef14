"""The report as one HTML text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scipy.stats import binom

from lla_fusion_ros.report import html
from lla_fusion_ros.report.cards import MOST_OPEN, Cards
from lla_fusion_ros.report.html import escape
from lla_fusion_ros.report.score_charts import overview, reliability_svg
from lla_fusion_ros.report.scoring import SINGLE_FRAME, ReplayScores
from lla_fusion_ros.report.tracks import Timeline, TimelineSink

CHANCE = 0.02  # below it too few sets hold the truth


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
    tracks = [track for track in report.timelines.tracks.values() if track.points]
    tracks.sort(key=lambda track: (min(point.stamp for point in track.points), track.id))
    first, last = report.timelines.first or 0, report.timelines.last
    body = [
        html.heading(report.title, report.subtitle),
        html.tiles(_tiles(report, tracks)),
        html.notes(report.notes),
        _scores(report) if report.scores is not None else "",
    ]
    if tracks:
        cards = Cards(report, tracks)
        many = " many" if len(tracks) > MOST_OPEN else ""
        body.append(f"<h2>All objects</h2><div class='card scroll{many}' tabindex='0'>")
        body += [overview(tracks, first, last, cards.colours), "</div>"]
        body += [_how_to_read(report), _tools(tracks), *cards.html()]
    if report.timelines.forgotten:
        body.append(
            f"<p class='soft'>{report.timelines.forgotten} further objects, without warnings, are not "
            "shown.</p>"
        )
    body.append(html.folded("Settings", report.settings) + html.folded("Model file", report.bundle))
    names = html.json_text(list(report.class_names))
    names = f"<script type='application/json' id='class-names'>{names}</script>"
    return html.document(report.title, body, f"{names}<script>{html.asset('script.js')}</script>")


def _tiles(report: ReportInput, tracks: Sequence[Timeline]) -> list[tuple[str, str, str]]:
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
        tiles += _sets_that_hold(report, tracks)
    return [*tiles, *(("", value, label) for label, value in report.facts.items())]


def _against_single(gain: float) -> tuple[str, str]:
    """How a number that fusion should raise looks, and what is said where it did the contrary."""
    return ("bad", ": worse") if gain < 0 else ("good", "") if gain > 0 else ("", "")


def _sets_that_hold(report: ReportInput, tracks: Sequence[Timeline]) -> list[tuple[str, str, str]]:
    """How many objects' last sets hold their true class; bad where chance does not explain so few."""
    statements = report.timelines.statements
    held = []
    for track in tracks:
        if track.told is None:
            continue
        last, shown = track.told
        if shown.class_name in report.class_names and last.choices < len(report.class_names):
            truth = list(report.class_names).index(str(shown.class_name))
            held.append(truth in last.pmf.argsort()[::-1][: last.choices])
    if not held or statements is None:
        return []
    few = binom.cdf(sum(held), len(held), statements.coverage) < CHANCE
    label = f"sets hold the true class, promised {statements.coverage:.0%}"
    return [("bad" if few else "", f"{sum(held)} of {len(held)}", label)]


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
        f"{''.join(rows)}</table></div><p class='about'>Over {report.scores.fusers[0].views:,} views of "
        f"known objects; AUROC of the entropy for telling unknown objects from known ones.{model} "
        "Last accuracy: of each track its last shown class. ▾: worse than single frames.</p>"
        f"<p>{escape(report.scores.remark(report.fuser))}</p>"
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
    bound = ", and dashed the bound of its error" if report.timelines.statements else ""
    return (
        "<h2>Object by object</h2><p class='about'>On top what each single frame said, by camera: "
        "colour is the class, strength the probability; framed pictures contradict the fused class. "
        f"Below: the fused distribution over all cameras and frames so far, and its entropy{bound}; "
        "dashed upright lines: the shown class changes. Bars above and below: a warning, hatched for "
        f"“cannot tell”.{truth} Move over a chart, or focus it and use the arrow keys, to read it.</p>"
    )


def _tools(tracks: Sequence[Timeline]) -> str:
    reasons = sorted({reason for track in tracks for reason in track.reasons})
    options = "".join(
        f"<option value='{escape(reason)}'>{escape(html.words(reason))}</option>" for reason in reasons
    )
    return (
        "<div class='tools'><input id='find' type='search' placeholder='object or class' aria-label='find'>"
        "<select id='only' aria-label='which objects'><option value=''>all objects</option>"
        f"<option value='look'>needs a look</option>{options}</select>"
        "<button id='fold' type='button'>open all</button>"
        "<span id='count' class='soft' role='status'></span></div>"
    )
