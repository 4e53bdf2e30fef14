"""The generated parts of the pages, each a function from the results to Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lla_fusion_ros.bundle import Bundle


MODELS = Path(__file__).resolve().parents[1] / "models"


class Results:
    """docs/results: NAME.json by name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, name: str) -> dict[str, Any]:
        record: dict[str, Any] = json.loads((self._folder / f"{name}.json").read_text(encoding="utf-8"))
        return record


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def short(value: float, digits: int = 3) -> str:
    """.123 in the place of 0.123, as tables of probabilities are read."""
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def paper(results: Results, name: str, *scores: str) -> str:
    """Means over seeds, the paper's printed value in brackets."""
    record = results[f"reproduce-{name}"]
    titles = {"accuracy": "accuracy", "nll": "NLL", "brier": "Brier", "ece": "ECE", "auroc": "AUROC, unknown"}
    rows = []
    for row in record["table"]:
        cells = []
        for score in scores:
            mean, _, printed = row[score]
            text = short(mean, 4 if score in ("ece", "nll") else 3)
            cells.append(text if printed is None else f"{text} ({printed:g})".replace("(0.", "(."))
        rows.append([row["title"], *cells])
    widest = {score: max(row[score][1] for row in record["table"]) for score in ("accuracy", "ece")}
    note = (
        f"\nMeans of {len(record['seeds'])} ensembles of {record['networks']} networks; standard deviation "
        f"at most {short(widest['accuracy'], 4)} (accuracy) and {short(widest['ece'], 4)} (ECE).\n"
    )
    return markdown(["method", *(titles[score] for score in scores)], rows) + note


def camera_traps(results: Results) -> str:
    """Whole sequences: a network from scratch, heads on a trained trunk, new sites and known ones."""
    record = results["reproduce-cameratraps"]
    shown = ("last", "mean_pmf", "product", "wls", "ella", "pool", "evidence_pool")
    ways = {
        ("scratch", "site"): "from scratch, new sites",
        ("trunk", "site"): "trained trunk, new sites",
        ("trunk", "sequence"): "trained trunk, known sites",
    }
    rows = []
    for way, title in ways.items():
        for row in record["table"]:
            if row["fuser"] in shown and (row["way"], row["by"], row["L"]) == (*way, "all"):
                mean, spread = row["mean"], row["spread"]
                cells = [f"{short(mean[n])} ± {short(spread[n])}" for n in ("accuracy", "nll")]
                cells += [short(mean[n]) for n in ("brier", "ece", "auroc")]
                rows.append([title, f"`{row['fuser']}`", *cells])
                title = ""  # once for each group
    return markdown(["networks", "fuser", "accuracy", "NLL", "Brier", "ECE", "AUROC, rare"], rows)


def fusers(results: Results, name: str, *cells: str) -> str:
    """Accuracy / NLL at some regimes and lengths (hard:10 ...), the best NLL over all of them first."""
    record = results[name]
    wanted = [(cell.split(":")[0], int(cell.split(":")[1])) for cell in cells]
    found = {(row["fuser"], row["regime"], row["L"]): row for row in record["results"]}
    ratio = {row["fuser"]: row for row in record["over_pool"]}
    calibrated, longest = max(n for r, n in wanted if r == "mixed"), max(n for _, n in wanted)
    names = sorted(ratio, key=lambda fuser: sum(found[(fuser, *cell)]["nll"] for cell in wanted))
    header = ["fuser", *(f"{regime}, L={length}" for regime, length in wanted)]
    header += [
        f"ECE hard, L={calibrated}",
        f"flips hard, L={longest}",
        f"NLL / `pool`, L ≥ {record['L_from']}",
    ]
    rows = []
    for fuser in names:
        pairs = [found[(fuser, *cell)] for cell in wanted]
        low, high = ratio[fuser]["nll_over_pool_interval"]
        over = f"{short(ratio[fuser]['nll_over_pool'], 2)} [{short(low, 2)}, {short(high, 2)}]"
        rows.append(
            [
                f"**`{fuser}`**" if fuser == record["default_fuser"] else f"`{fuser}`",
                *(f"{short(row['accuracy'])} / {short(row['nll'])}" for row in pairs),
                short(found[fuser, "hard", calibrated]["ece"]),
                short(found[fuser, "hard", longest]["flips"], 2),
                "1" if fuser == "pool" else over,
            ]
        )
    note = f"\n{record['tracks']} test tracks, {record['draws']} draws where degraded; bold: the default.\n"
    return markdown(header, rows) + note


def warnings(results: Results, inside: str, outside: str, held_out: str) -> str:
    """Unknown objects, seen three times, those of classes held out, seen ten times, and identity switches."""
    switched = results[inside]["switch"]
    unknown, left_out = (
        {(row["score"], row["regime"]): row for row in results[name]["ood"] if row["L"] == views}
        for name, views in ((outside, 3), (held_out, 10))
    )
    rows = [
        [
            row["regime"],
            *(
                f"{short(found['combined', row['regime']]['auroc'])} / "
                f"{short(found['fused entropy', row['regime']]['auroc'])}"
                for found in (unknown, left_out)
            ),
            short(unknown["combined", row["regime"]]["fpr95"]),
            f"{row['detection_5']:.0%} / {row['detection_15']:.0%}",
            f"{row['false_alarm']:.1%}",
        ]
        for row in switched
    ]
    header = ["regime", "Belgian signs, L=3: AUROC of the warning / of the fused entropy"]
    header += ["German classes left out, L=10: the same", "FPR at 95%, Belgian signs"]
    header += ["identity switch found within 5 / 15 frames", "false alarms per track (1% set)"]
    return markdown(header, rows)


def false_alarms(results: Results, demo: str) -> str:
    """Objects of known classes that are ever called unknown in whole drives, as an item of a list."""
    seen, hidden = (results[demo]["drives"][part] for part in ("in_full_view", "partly_hidden"))
    return (
        f"- **Partly hidden signs** are called unknown more often: {hidden['out_of_distribution']} of "
        f"{hidden['tracks']} in rendered drives, against {seen['out_of_distribution']} of {seen['tracks']} "
        "in full view (2% set).\n"
    )


def conditions(results: Results, name: str, held_out: str = "") -> str:
    """What known tracks are called by condition, those under which all is well in one row; then strangers."""
    record = results[name]["conditions"]
    left_out = results[held_out]["conditions"] if held_out else []

    def shares(row: dict[str, Any], *keys: str) -> list[str]:
        return [f"{100 * row[key] / row['tracks']:.1f}" for key in keys]

    known = [row for row in record if row["tracks_of"] == "known"]
    well = [
        row
        for row in known
        if row["unknown"] <= 0.03 * row["tracks"] and row["right"] >= 0.93 * row["tracks"]
    ]
    worst = [max(row[key] / row["tracks"] for row in well) for key in ("unknown", "cannot_tell")]
    least = min(row["right"] / row["tracks"] for row in well)
    rows = [
        [
            f"{well[0]['condition']}, and {len(well) - 1} more conditions",
            *(f"≤ {100 * share:.1f}" for share in worst),
            f"≥ {100 * least:.1f}",
        ]
    ]
    told = ("unknown", "cannot_tell", "right")
    rows += [[row["condition"], *shares(row, *told)] for row in known if row not in well]
    header = [f"{known[0]['tracks']} known tracks", "called unknown, %", "cannot tell, %", "right, %"]
    names = {"unknown": "Belgian signs, mostly 3 views"}
    strangers = [(row["tracks_of"], row) for row in record if row["tracks_of"] != "known"]
    strangers = [(names.get(of, of), row) for of, row in strangers]
    strangers[1:1] = [("German classes left out", row) for row in left_out if row["tracks_of"] == "unknown"]
    outside = [
        [f"{row['tracks']}, {of}", *shares(row, "unknown", "cannot_tell", "sure")] for of, row in strangers
    ]
    other = ["other tracks", "called unknown, %", "cannot tell, %", "sure (p ≥ .9) and unwarned, %"]
    return markdown(header, rows) + "\n" + markdown(other, outside)


def safety(results: Results, name: str) -> str:
    """How sure each fuser gets of contradictions, odd frames and repetitions: its worst regime."""
    record = results[name]
    rows = []
    for fuser in dict.fromkeys(row["fuser"] for row in record["safety"]):
        own = [row for row in record["safety"] if row["fuser"] == fuser]
        worst = {key: max(row[key] for row in own) for key in own[0] if key not in ("fuser", "regime")}
        least = min(row["least_doubt"] for row in own)
        rows.append(
            [
                f"**`{fuser}`**" if fuser == record["default_fuser"] else f"`{fuser}`",
                f"{short(worst['contradiction_median'], 2)} / {worst['contradiction_high']:.0%}",
                f"{worst['cameras_high']:.0%}" if "cameras_high" in worst else "–",  # older records
                f"{min(row['followed'] for row in own):.0%}" if "followed" in worst else "–",
                f"{worst['odd_high']:.0%}",
                f"{worst['nll_rise']:+.2f}" if abs(worst["nll_rise"]) >= 0.005 else "0",
                short(least, 4) if least else "< .0001",
            ]
        )
    rows.sort(key=lambda cells: not cells[0].startswith("**"))
    header = ["fuser", "sure opposite views: median p of the surer side / p > .9 of pairs"]
    header += ["two cameras at one time: p > .9", "15 of one class, then 3 of another: it leads"]
    header += ["one odd frame: p > .9", "one frame 200 times: change of the NLL", "1 − p, at least"]
    return markdown(header, rows)


def promises(results: Results, name: str, promised: str) -> str:
    """Whether sets and bounds hold on tracks that nobody has seen: one sentence."""
    record = results[name]
    bounds = [row for row in record["bounds"] if row["bounds"] == "sets and bounds"]
    sets = [row for row in record["sets"] if row["promised"] == float(promised)]
    held = {
        bound["regime"]: " / ".join(short(row["held"]) for row in sets if row["regime"] == bound["regime"])
        for bound in bounds
    }
    below = sum(row["held"] < row["least"] for row in record["sets"])
    return (
        f"{record['tracks']:,} fresh tracks: sets promised for {float(promised):.0%} of objects hold in "
        + ", ".join(f"{share} ({regime})" for regime, share in held.items())
        + f" of them, from 1, 3 and 10 views on; {below} of {len(record['sets'])} shares, over all promises, "
        "are lower than chance explains. Errors and their mean bounds: "
        + ", ".join(f"{short(row['error'])} ≤ {short(row['mean_bound'])} ({row['regime']})" for row in bounds)
        + ".\n"
    )


def bounds(results: Results, *names: str) -> str:
    """How tight the bounds on the error are, beside those of the uncertainty wrapper."""
    lines = [
        "| tracks | regime | error ≤ mean bound / Brier score of the bound | the wrapper's |",
        "|---|---|---|---|",
    ]
    for name in names:
        rows = results[name]["bounds"]
        for regime in dict.fromkeys(row["regime"] for row in rows):
            cells = [
                f"{short(row['error'])} ≤ {short(row['mean_bound'])} / {short(row['brier'], 4)}"
                for row in rows
                if row["regime"] == regime
            ]
            lines.append(f"| `{name}` | {regime} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def changes(results: Results, *names: str) -> str:
    """What is shown when the class under one id changes: an item of a list for each bundle."""
    told = []
    for name in names:
        glitch, abrupt, fade, light = results[name]["changes"]
        told.append(
            f"- **Changes, `{name}`** ({glitch['pairs']} pairs of tracks). One wrong frame a second is shown "
            f"as sure in {glitch['sure_of_the_wrong_one']:,} of {glitch['frames']:,} frames and makes "
            f"tracks begin again {glitch['restarts']} time{'s' * (glitch['restarts'] != 1)}. Followed: an "
            f"abrupt change in {abrupt['followed']:.0%} within 5 frames, a fade over 3 s in "
            f"{fade['followed']:.0%} within 2 s of its end, a changing class in {light['followed']:.0%} "
            "within 5 frames.\n"
        )
    return "".join(told)


def weak_classes(results: Results, name: str, most: str, *title: str) -> str:
    """The classes that are confused most in the hard regime, as an item of a list."""
    record = results[name]["classes"]
    told = [
        f"*{row['class']}* ({short(row['accuracy'], 2)} of {row['tracks']}, taken for *{row['taken_for']}*)"
        for row in record["weak"][: int(most)]
    ]
    below = f"{len(record['weak'])} of {record['classes']} classes have an accuracy below .9"
    return f"- **{' '.join(title)}.** After {record['frames']} hard views {below}: {', '.join(told)} …\n"


def speed(results: Results) -> str:
    """What `make bench` measures."""
    record = results["bench"]
    found = {(_load(row), row["run"]): row for row in record["price"] if "run" in row}
    rows = []
    for load in dict.fromkeys(load for load, _ in found):
        product, onnx, plain = (found[load, run] for run in ("product", "product onnx", "plain"))
        ratios = _times(product, "of_plain"), _times(product, "of_int8"), _times(onnx, "of_plain")
        rows.append([*load, f"{product['cpu_ms']:.2f} ms", *ratios, _latency(product), _latency(plain)])
    header = [
        *("", "objects", "CPU of a view", "/ float32", "/ int8", "in ONNX Runtime / float32"),
        *("latency (95%)", "float32: latency"),
    ]
    note = f"\n{_machine(record)}; medians [quartiles], one thread unless said.\n"
    if record["machine"].get("load", 0) > record["machine"]["cores"]:
        note += (
            "**Other programs kept the machine busier than it has cores**: on a quiet one latency and losses "
            "are lower, and ratios may differ too.\n"
        )
    engine = [f"{row['ratio_forward']:.0%} for {row['tracks']} (L = {row['L']})" for row in record["fusion"]]
    peaks = [f"{row['peak_mb']} MB for {row['bag_seconds']:g} s of a bag" for row in record["memory"]]
    return (
        f"{markdown(header, rows)}{note}\n{_overload(record['price'][-1])}"
        f"- Engine, of the float32 forward pass, for so many objects in a frame: {', '.join(engine)}.\n"
        f"- Memory: {', '.join(peaks)}; {record['fusion'][0]['bytes_per_track']} bytes of an object, however "
        "long it is seen.\n"
    )


def _overload(row: dict[str, Any]) -> str:
    """Where the frames went that more cameras send than can be served."""
    ends = {
        "fused_frames": "fused",
        "dropped_queue_full": "dropped because the networks were behind (`queue_full`)",
        "lost_by_dds": "lost by DDS",
        "images_without_detections": "without boxes, which DDS lost or brought too late",
        "unused_frames": "too late to be fused",
        "uncounted": "**uncounted**",
    }
    shares = [f"{row[key] / row['sent']:.0%} {end}" for key, end in ends.items() if row.get(key, 0) > 0]
    return (
        f"- Overload, {row['cameras']} cameras with {row['objects']} objects each, {row['frames_per_s']:g} "
        f"frames/s: {', '.join(shares)}. Fused of a camera: {row['fewest_of_a_camera']} to "
        f"{row['most_of_a_camera']} of {row['sent'] // row['cameras']} frames, latency {_latency(row)}.\n"
    )


def _load(row: dict[str, Any]) -> tuple[str, str]:
    """What one row of the table of prices is about."""
    threads = ", 2 threads" if row.get("threads") == 2 else ""
    cameras = f"{row['cameras']} camera" + "s" * (row["cameras"] > 1) if row["kind"] == "live" else ""
    where = f"live, {cameras}{', raw 1080p' * row['raw']}" if cameras else f"replay{threads}"
    return where, str(row["objects"])


def _latency(row: dict[str, Any]) -> str:
    return f"{row['p50_ms']:.0f} ms ({row['p95_ms']:.0f})" if "p50_ms" in row else ""


def _times(row: dict[str, Any], key: str) -> str:
    low, high = row[f"{key}_quartiles"]
    return f"{row[key]:.2f} [{low:.2f}, {high:.2f}]"


def faults(results: Results) -> str:
    """The campaign in a sentence, and what did not hold."""
    record = results["faults"]
    injected, checks = (sum(fault[key] for fault in record["faults"]) for key in ("injected", "checks"))
    failures = sum(len(fault["failures"]) for fault in record["faults"])
    told = (
        f"{record['runs']} runs of {len(record['faults'])} faults: {injected} injections, {checks} checks, "
        f"{failures} failures."
    )
    if record.get("recovery_s") is not None:
        told += f" A link that is back brings the far camera back within {record['recovery_s']:.1f} s."
    wrong = [
        f"- **{fault['name'].replace('_', ' ')}** "
        + (f"failed: {fault['failures'][0][:200]}" if fault["failures"] else fault["not_possible"])
        for fault in record["faults"]
        if fault["failures"] or fault["not_possible"]
    ]
    return "\n".join([told, *wrong]) + "\n"


MEASURED = {
    "memory_mb": "resident memory, MB",
    "handles": "file handles",
    "threads": "threads",
    "p50_ms": "latency, median, ms",
    "p95_ms": "latency, 95%, ms",
    "watch_memory_mb": "the watcher's memory, MB",
    "watch_handles": "its file handles",
    "watch_threads": "its threads",
}


def soak(results: Results, *names: str) -> str:
    """Of each run the load, the balance of frames, and what grows."""
    records = [results[name] for name in names]
    runs = [f"`{record['load']['node']}`" for record in records]
    table = [f"| level, change in an hour [95%] | {' | '.join(runs)} |", "|---|" + "---|" * len(runs)]
    for key, what in MEASURED.items():
        cells = [_level(record["slopes"].get(key)) for record in records]
        table.append(f"| {what} | {' | '.join(cells)} |")
    told = [
        f"- {run}: {_soak_load(record['load'])} {_frames(record['balance'])}"
        for run, record in zip(runs, records, strict=True)
    ]
    return "\n".join([f"On one core of: {_machine(records[0])}.", "", *told, "", *table]) + "\n"


def _level(slope: dict[str, Any] | None) -> str:
    if slope is None:
        return "–"
    change, low, high = (
        f"{slope[key]:+.0f}" if abs(slope[key]) >= 100 else f"{slope[key]:+.2g}"
        for key in ("per_hour", "low", "high")
    )
    change = f"{change} [{low}, {high}]"
    return f"{slope['level']:.4g}, {change}" + ("" if slope["flat"] else " **grows**")


def _soak_load(load: dict[str, Any]) -> str:
    shown = f"{load['cameras']} cameras at {load['rate']:.3g} Hz"
    if load["node"] == "perception":
        shown += f" with {load['objects']} objects, {load['joins']} joins of tracks"
    else:
        shown += f", {load['objects']} objects alive"
    return (
        f"{load['minutes']:g} minutes, {shown}, ids up to {load['highest_id']}. The node took "
        f"{load['core']:.0%} of the core, {load['share']:.0%} of what the others left."
    )


def _frames(account: dict[str, Any]) -> str:
    """Where every frame went."""
    parts = {
        "fused": ("fused_frames",),
        "dropped because the node was behind (`queue_full`)": ("dropped_queue_full",),
        "lost by DDS and counted": ("lost_by_dds",),
        "unused, with a reason for every object": ("unused_frames", "dropped_bad_image"),
        "without boxes": ("images_without_detections",),
        "without embeddings": ("dropped_views_without_embeddings", "dropped_bad_embeddings"),
        "waiting at the end": ("waiting_images", "waiting_views", "waiting_frames"),
    }
    counts = {what: sum(account[key] for key in keys) for what, keys in parts.items()}
    told = " + ".join(f"{count} {what}" for what, count in counts.items() if count)
    return f"{account['sent']} frames sent = {told}; **{account['uncounted']} uncounted**."


WAYS = {
    "global": "one id is one object in both cameras",
    "tracking": "built-in trackers, joined by geometry",
    "scores": "single frames as a detector's scores",
}


def drives(results: Results, *ways: str) -> str:
    """Of every way the rules: over all known objects, those whose class changes (lights) and the others."""
    from lla_fusion_ros.report.comparison import ONE_VIEW, where_not_best

    record, tables = results["drives"], []
    for way in ways:
        used = record["defaults"][way]
        found = {(row["rule"], row["part"]): row for row in record["rules"] if row["way"] == way}
        lags = {row["rule"]: row for row in record["lag"] if row["way"] == way}
        parts = [part for part in ("all", "lights", "signs") if (used, part) in found]
        names = sorted(lags, key=lambda rule: (rule != "single frame", rule == ONE_VIEW, rule == used))
        rows = [
            [
                f"**`{rule}`**" if rule == used else rule if " " in rule else f"`{rule}`",
                *(_right_and_nll(found[rule, part]) for part in parts),
                short(found[rule, "all"]["ece"]),
                _surely_wrong(found[rule, "all"]["sure_wrong"]),
                _follows(lags[rule]),
            ]
            for rule in names
        ]
        header = [WAYS[way], *parts, "ECE", "wrong at p ≥ .9", "leads at once, by the 2nd frame"]
        scores = {
            f"over {part}": {
                rule: (found[rule, part]["accuracy"], found[rule, part]["nll"])
                for rule in names
                if rule != ONE_VIEW
            }
            for part in parts
        }
        tables.append(f"{markdown(header, rows)}\n{where_not_best(scores, used)}\n")
    return "\n".join(tables)


def drive_facts(results: Results) -> str:
    """What was driven, whether the difference is chance, and how often ordinary objects are warned of."""
    record = results["drives"]
    seeds, way = record["seeds"], next(iter(record["defaults"]))
    whole = next(row for row in record["rules"] if (row["way"], row["part"]) == (way, "all"))
    changes = next(row["changes"] for row in record["lag"] if row["way"] == way)
    lines = [
        f"- {len(seeds)} drives (seeds {seeds[0]} to {seeds[-1]}) of {record['duration']:g} s: "
        f"{whole['views']:,} views of known objects, {changes} changes of a light."
    ]
    for row in record["against"]:
        if (row["part"], row["rule"]) == ("all", "single frame"):
            low, high = row["interval"]
            lines.append(
                f"- `{record['defaults'][row['way']]}`, {WAYS[row['way']]}: NLL {row['ratio']:.2f} × single "
                f"frames', difference {row['nll_difference']:+.4f} [{low:+.4f}, {high:+.4f}]."
            )
    told = ("any warning", "out_of_distribution", "cannot_tell")
    rows = []
    for row in record["warned"]:
        if row["way"] == way:
            shares = (row["reasons"].get(reason, [0.0, 0.0]) for reason in told)
            rows.append(
                [
                    f"{row['kind']}, {row['size']} px",
                    f"{row['objects']}, {row['views']:,}",
                    *(f"{ever:.1%}, {views:.1%}" for ever, views in shares),
                ]
            )
    header = [
        "objects, box",
        "objects, views",
        "called unknown: ever, of views",
        "cannot tell: ever, of views",
    ]
    return "\n".join(lines) + "\n\n" + markdown(header, rows)


def _right_and_nll(row: dict[str, Any]) -> str:
    return f"{short(row['accuracy'], 4)} / {short(row['nll'], 4)}"


def _surely_wrong(causes: dict[str, int]) -> str:
    """How many frames, and the reasons there are."""
    named = ", ".join(f"{count} {cause}" for cause, count in causes.items() if count)
    return f"{sum(causes.values())}" + (f" ({named})" if named else "")


def _follows(lag: dict[str, Any]) -> str:
    return "–" if lag["first"] is None else f"{lag['first']:.0%}, {lag['second']:.0%}"


def commands(results: Results, *names: str) -> str:
    """The commands that made the results."""
    return "```sh\n" + "\n".join(results[name]["command"] for name in names) + "\n```\n"


def card(results: Results, name: str) -> str:
    """Facts and scores of one bundle; the commands that made it are in the file."""
    from lla_fusion_ros.bundle import load_bundle  # torch: only where a card is made

    path = MODELS / f"{name}.safetensors"
    bundle, record = load_bundle(path), results[name]
    rows = []
    for regime, alone in record["single_frame"].items():
        last = [
            row
            for row in record["results"]
            if (row["fuser"], row["regime"]) == (record["default_fuser"], regime)
        ][-1]
        low, high = last["accuracy_interval"]
        fused = f"{short(last['accuracy'])} [{short(low)}, {short(high)}]"
        rows.append([regime, short(alone), fused, short(last["nll"]), short(last["ece"])])
    header = [f"{record['tracks']} test tracks", "single frames right", f"fused, L={last['L']}", "NLL", "ECE"]
    return markdown(["", ""], _facts(bundle, path.stat().st_size)) + "\n" + markdown(header, rows)


def _facts(bundle: Bundle, size: int) -> list[tuple[str, str]]:
    meta = bundle.meta
    tracks = meta.dataset["tracks"]
    weights = sum(array.size for name, array in bundle.tensors.items() if name.startswith("network."))
    channels = "-".join(str(count) for count in meta.architecture["channels"])
    shared = meta.training.get("shared", 0)
    chosen = meta.scores["default_fuser"]["cross_validated_nll"]
    return [
        ("file", f"{size / 1e6:.1f} MB, SHA-256 of its content `{bundle.hash[:16]}…`"),
        (
            "networks",
            f"{meta.networks} × `{meta.architecture['name']}` {channels}, {weights / 1e6:.1f} M weights"
            + (f", the first {shared} convolutions in common" if shared else ""),
        ),
        ("input", f"RGB crops of {meta.input_size} px, boxes grown by {meta.crop_margin:.0%} on each side"),
        (
            "tracks",
            f"{tracks['train']} training, {tracks['validation']} of them calibration by other networks"
            if meta.dataset.get("all_tracks")
            else f"{tracks['train']} training, {tracks['validation']} validation, {tracks['test']} test"
            + (" (the data set's own test part)" if meta.dataset.get("own_test") else ""),
        ),
        (
            "default fuser",
            f"`{meta.default_fuser}`, cross-validated NLL {chosen[meta.default_fuser]:.3f}"
            + (f" (`pool` {chosen['pool']:.3f})" if "pool" in chosen else "")
            if meta.default_fuser in chosen
            else f"`{meta.default_fuser}`",
        ),
    ]


def _machine(record: dict[str, Any]) -> str:
    machine = record["machine"]
    load = f", load {machine['load']:g} when it began" if "load" in machine else ""
    return f"{machine['cpu']}, {machine['cores']} cores{load}"


TABLES: dict[str, Callable[..., str]] = {
    "paper": paper,
    "camera-traps": camera_traps,
    "fusers": fusers,
    "safety": safety,
    "warnings": warnings,
    "false-alarms": false_alarms,
    "conditions": conditions,
    "promises": promises,
    "bounds": bounds,
    "changes": changes,
    "weak-classes": weak_classes,
    "drives": drives,
    "drive-facts": drive_facts,
    "speed": speed,
    "faults": faults,
    "soak": soak,
    "commands": commands,
    "card": card,
}
