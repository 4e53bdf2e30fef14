"""The tables of docs/evidence.md, each a function from the JSON results to Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

BASELINES = ("last", "vote", "mean_pmf", "product", "log_odds", "ema")
NUMBER = 10  # the length most tables show


class Results:
    """docs/results: NAME.json by name; empty where the file is not there yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, name: str) -> dict[str, Any]:
        file = self._folder / f"{name}.json"
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def missing(name: str) -> str:
    return f"*No results yet: docs/results/{name}.json is missing.*\n"


def short(value: float, digits: int = 3) -> str:
    """.123 in the place of 0.123, as tables of probabilities are read."""
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def limits(record: dict[str, Any], key: str) -> str:
    low, high = record[f"{key}_interval"]
    return f"{short(record[key])} [{short(low)}, {short(high)}]"


# The paper's tables


def paper_table(results: Results, name: str, *scores: str) -> str:
    """Ours, mean ± spread over seeds, and the paper's in brackets."""
    document = results[f"reproduce-{name}"]
    if not document:
        return missing(f"reproduce-{name}")
    titles = {
        "accuracy": "accuracy",
        "confidence": "mean confidence",
        "nll": "NLL",
        "mass": "Σ p(true) (10³)",
        "brier": "Brier",
        "ece": "ECE",
        "ece_paper": "ECE, paper's",
        "delta_entropy": "ΔE (10³)",
        "auroc": "AUROC",
        "aupr": "AUPR",
    }
    rows = []
    for row in document["table"]:
        cells = [_beside_paper(row["scores"][score], score) for score in scores]
        rows.append([row["title"], *cells])
    return markdown(["method", *(titles[score] for score in scores)], rows)


def _beside_paper(score: dict[str, Any], name: str) -> str:
    digits = {"accuracy": 4, "confidence": 4, "nll": 4, "brier": 4, "ece": 4}.get(name, 3)
    text = f"{short(score['mean'], digits)} ± {short(score['spread'], digits)}"
    return text if score["paper"] is None else f"{text} ({score['paper']:g})"


# Tracks


def fuser_table(results: Results, name: str, *cells: str) -> str:
    """Accuracy / NLL at some regimes and lengths (hard:10 ...), all networks, and the NLL over `pool`'s."""
    document = results[name]
    if not document:
        return missing(name)
    count = document["bundle"]["networks"]
    wanted = [(cell.split(":")[0], int(cell.split(":")[1])) for cell in cells]
    found = {(r["fuser"], r["regime"], r["L"]): r for r in document["results"] if r["C"] == count}
    lengths = {r["L"] for r in document["results"]}
    number = NUMBER if NUMBER in lengths else max(lengths)
    start, ratio = _over_pool(document)
    names = sorted({r["fuser"] for r in document["results"]}, key=lambda n: (_overall(found, n, wanted), n))
    header = ["fuser", *(f"{regime} L={length}" for regime, length in wanted)]
    header += [f"ECE hard L={number} (exact)", f"flips hard L={max(n for _, n in wanted)}"]
    header.append(f"NLL / pool, L ≥ {start}")
    rows = []
    for fuser in names:
        row = [f"**{fuser}**" if fuser == document["default_fuser"] else fuser]
        for regime, length in wanted:
            r = found[fuser, regime, length]
            row.append(f"{short(r['accuracy'])} / {short(r['nll'])}")
        row.append(_ece(found[fuser, "hard", number]))
        last = found.get((fuser, "hard", max(n for _, n in wanted)))
        row.append(short(last["flips"], 2) if last else "")
        row.append(limits(ratio[fuser], "nll_over_pool") if fuser in ratio else "")
        rows.append(row)
    note = (
        f"\n{document['tracks']} tracks, {document['draws']} draws where degraded, {count} networks; "
        "bold: the bundle's default; (exact): what exact confidences would show.\n"
    )
    return markdown(header, rows) + note


def across_table(results: Results, *names: str) -> str:
    """NLL over `pool`'s of the fusers that learn, on every set of test tracks; bold: the lowest of a row."""
    shown = ("dual_pool", "reliable_pool", "reliability", "ella_mixture", "hybrid", "wls_robust")
    rows = []
    for name in names:
        document = results[name]
        if not document:
            return missing(name)
        ratio = {fuser: r["nll_over_pool"] for fuser, r in _over_pool(document)[1].items()}
        own = [ratio[fuser] for fuser in shown if fuser in ratio]
        cells = [
            "–" if fuser not in ratio
            else f"**{short(ratio[fuser])}**" if ratio[fuser] == min([*own, 1.0])
            else short(ratio[fuser])
            for fuser in shown
        ]  # fmt: skip
        rows.append([f"results/{name}.json", str(document["tracks"]), *cells])
    return markdown(["test tracks", "number", *(f"`{fuser}`" for fuser in shown)], rows)


def over_mean_table(results: Results, regime: str, *names: str) -> str:
    """NLL over the mean pmf's in one regime with all views, and all together where the test tracks differ."""
    shown = ("dual_pool", "reliable_pool", "reliability", "ella_mixture", "hybrid", "pool")
    rows, sums = [], dict.fromkeys((*shown, "mean_pmf"), 0.0)
    signs = set()
    for name in names:
        document = results[name]
        if not document:
            return missing(name)
        count, longest = document["bundle"]["networks"], max(r["L"] for r in document["results"])
        nll = {
            r["fuser"]: r["nll"]
            for r in document["results"]
            if (r["regime"], r["C"], r["L"]) == (regime, count, longest)
        }
        for fuser in sums:
            sums[fuser] += nll[fuser]
        signs.add((document["dataset"].get("split_seed", name), document["tracks"]))
        bold = document["default_fuser"]
        cells = [short(nll[fuser] / nll["mean_pmf"]) for fuser in shown]
        cells = [f"**{cell}**" if fuser == bold else cell for fuser, cell in zip(shown, cells, strict=True)]
        rows.append([f"results/{name}.json", *cells, short(nll["mean_pmf"])])
    if len(signs) > 1:
        together = [short(sums[fuser] / sums["mean_pmf"]) for fuser in shown]
        rows.append(["all together", *together, short(sums["mean_pmf"] / len(names))])
    return markdown(["test signs", *(f"`{fuser}`" for fuser in shown), "NLL of `mean_pmf`"], rows)


def misread_table(results: Results, *names: str) -> str:
    """What tools/measure_misread.py found: NLL from misread objects and from the rest, and the best fits."""
    rows = []
    for name in names:
        if not results[name]:
            return missing(name)
        for record in results[name]["bundles"]:
            base, *learned = (record["fusers"][fuser] for fuser in ("mean_pmf", "pool", "dual_pool"))
            sums = [f"{short(own['nll_misread'])} + {short(own['nll_rest'])}" for own in (base, *learned)]
            ratios = [
                " → ".join(short(own[key] / base["nll"]) for key in ("nll", "nll_fitted_to_these"))
                for own in learned
            ]
            counts = [
                f"{record[f'misread{which}']} of {record[f'tracks{which}']}" for which in ("", "_of_rare")
            ]
            rows.append([record["file"], *counts, *sums, *ratios])
    shown = ("`mean_pmf`", "`pool`", "`dual_pool`")
    header = ["bundle", "misread", "of rare classes", *(f"NLL of {fuser}" for fuser in shown)]
    return markdown(header + [f"{fuser} / `mean_pmf`" for fuser in shown[1:]], rows)


def parts_table(results: Results, *names: str) -> str:
    """NLL over the mean pmf's on each part of the data set, over all bundles of the results together."""
    found: dict[str, dict[str, float]] = {}  # part -> fuser -> sum of NLL
    signs: dict[str, int] = {}
    for name in names:
        if not results[name]:
            return missing(name)
        for record in results[name]["bundles"]:
            for part, count in record["parts"].items():
                signs[part] = signs.get(part, 0) + count
                sums = found.setdefault(part, dict.fromkeys(record["fusers"], 0.0))
                for fuser, own in record["fusers"].items():
                    sums[fuser] += own["nll_of_part"][part] * count
    rows = [
        [
            part,
            str(signs[part]),
            *(short(sums[fuser] / sums["mean_pmf"]) for fuser in ("pool", "dual_pool")),
            short(sums["mean_pmf"] / signs[part]),
        ]
        for part, sums in found.items()
    ]
    return markdown(["test signs from", "number", "`pool`", "`dual_pool`", "NLL of `mean_pmf`"], rows)


def _over_pool(document: dict[str, Any]) -> tuple[int, dict[str, dict[str, Any]]]:
    """Each fuser's comparison with `pool` over all networks and regimes, and from which length on."""
    count, start = document["bundle"]["networks"], max(r["L_from"] for r in document["comparisons"])
    chosen = (
        r for r in document["comparisons"] if (r["regime"], r["C"], r["L_from"]) == ("all", count, start)
    )
    return start, {r["fuser"]: r for r in chosen}


def _ece(record: dict[str, Any]) -> str:
    least, most = (short(value) for value in record["ece_if_calibrated"])
    return f"{short(record['ece'])} ({least}–{most})"


def _overall(found: dict[Any, Any], fuser: str, wanted: Sequence[tuple[str, int]]) -> float:
    return sum(found[fuser, regime, length]["nll"] for regime, length in wanted)


def ood_table(results: Results, name: str, length: str = "10") -> str:
    document = results[name]
    if not document:
        return missing(name)
    if not document["ood"]:
        return "*Nothing was outside: the bundle knows every class of this data.*\n"
    chosen = [
        r for r in document["ood"] if r["L"] == int(length) and r["C"] == document["bundle"]["networks"]
    ]
    regimes = list(dict.fromkeys(r["regime"] for r in chosen))
    rows = []
    for score in dict.fromkeys(r["score"] for r in chosen):
        own = {r["regime"]: r for r in chosen if r["score"] == score}
        rows.append(
            [score.replace("_", " ")]
            + [
                f"{short(own[g]['auroc'])} / {short(own[g]['aupr'])} / {short(own[g]['fpr95'])}"
                for g in regimes
            ]
        )
    return markdown(["score", *(f"{g}: AUROC / AUPR / FPR95" for g in regimes)], rows)


def switch_table(results: Results, name: str) -> str:
    document = results[name]
    if not document:
        return missing(name)
    if not document["switch"]:
        return "*These tracks are too short for a switch.*\n"
    rows = [
        [
            r["regime"],
            short(r["detection_5"]),
            short(r["detection_15"]),
            "–" if r["delay"] is None else f"{r['delay']:.0f}",
            short(r["false_alarm"]),
            short(r["at_stated"]["detection_5"]),
        ]
        for r in document["switch"]
    ]
    titles = ["regime", "within 5", "within 15", "median delay", "false alarms per track"]
    return markdown([*titles, "within 5, were they 1%"], rows)


def stability_table(results: Results, name: str, length: str = "30") -> str:
    """What users complain of today: flips, and how long until the right class stays."""
    document = results[name]
    if not document:
        return missing(name)
    count = document["bundle"]["networks"]
    chosen = [r for r in document["results"] if r["C"] == count and r["L"] == int(length)]
    regimes = list(dict.fromkeys(r["regime"] for r in chosen))
    shown = [*BASELINES, "pool", document["default_fuser"]]
    rows = []
    for fuser in dict.fromkeys(shown):
        own = {r["regime"]: r for r in chosen if r["fuser"] == fuser}
        if own:
            cells = [f"{short(own[g]['flips'], 2)} / {own[g]['frames_to_settle']:.1f}" for g in regimes]
            rows.append([f"**{fuser}**" if fuser == document["default_fuser"] else fuser, *cells])
    return markdown(["fuser", *(f"{g}: flips / frames to settle" for g in regimes)], rows)


def command_block(results: Results, *names: str) -> str:
    """The commands that made the results, as they were typed."""
    commands = []
    for name in names:
        document = results[name]
        parts = [table for table in document.values() if isinstance(table, dict)]  # a file of several studies
        commands += [part["command"] for part in (document, *parts) if "command" in part]
    return "```sh\n" + "\n".join(commands) + "\n```\n"


def research_table(results: Results, key: str) -> str:
    """A table of docs/results/research.json: {key: {"header": [...], "rows": [[...]], "note": ...}}."""
    table = results["research"].get(key)
    if not table:
        return missing(f"research ({key})")
    rows = [[cell if isinstance(cell, str) else short(cell) for cell in row] for row in table["rows"]]
    return markdown(table["header"], rows) + ("\n" + table["note"] + "\n" if table.get("note") else "")


def targets_table(results: Results) -> str:
    from evidence_targets import targets

    return markdown(["number to reach", "wanted", "measured", "reached"], targets(results))


TABLES: dict[str, Callable[..., str]] = {
    "paper": paper_table,
    "fusers": fuser_table,
    "across": across_table,
    "over_mean": over_mean_table,
    "misread": misread_table,
    "parts": parts_table,
    "ood": ood_table,
    "switch": switch_table,
    "stability": stability_table,
    "command": command_block,
    "research": research_table,
    "targets": targets_table,
}
