"""The tables of docs/models.md, each a function from a bundle or a record to lines of Markdown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lla_fusion_ros.bundle import Bundle

LENGTHS = (1, 3, 10, 30)


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def bundle_rows(bundle: Bundle, size: int) -> list[str]:
    meta = bundle.meta
    data = meta.dataset
    tracks = data["tracks"]
    laplace = meta.scores["laplace"]
    rows = {
        "file": f"{size / 1e6:.2f} MB, SHA-256 of its content {bundle.hash[:16]}…",
        "networks": f"{meta.networks} × `{json.dumps(meta.architecture)}`, "
        f"{_parameters(bundle):,} parameters in all",
        "input": f"{meta.input_size} px RGB crops, boxes grown by {meta.crop_margin:g} on each side",
        "data": f"{data['name']} {str(data['digest'])[:12]}…, split by track with seed {data['split_seed']}: "
        f"{tracks['train']} training, {tracks['validation']} validation, {tracks['test']} test tracks"
        + (" (the data set's own test part)" if data.get("own_test") else ""),
        "training": f"Adam, L2 prior {meta.training['prior_precision']:g}, averaged weights, "
        f"crops {meta.training['clean']:.0%} clean, {meta.training['hard']:.0%} hard, the rest mixed; "
        f"{meta.training['outliers']:.0%} synthetic outliers",
        "Laplace": laplace["summary"],
        "default fuser": f"`{meta.default_fuser}`; cross-validated NLL "
        + ", ".join(
            f"`{name}` {value:.4f}"
            for name, value in meta.scores["default_fuser"]["cross_validated_nll"].items()
        ),
    }
    lines = ["| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in rows.items()), ""]
    return [*lines, "Made by", "", "```", *meta.training["commands"], "```", ""]


def own_scores(bundle: Bundle) -> list[str]:
    """What the bundle itself carries: its default fuser on its validation and test tracks."""
    lines = [
        f"Scores stored in the bundle, default fuser `{bundle.meta.default_fuser}` "
        "(single frame: all networks, no fusion):",
        "",
        "| tracks | regime | single frame | L | accuracy | NLL | ECE |",
        "|---|---|---|---|---|---|---|",
    ]
    for part in ("validation", "test"):
        scores = bundle.meta.scores.get(part)
        if scores is None:
            continue
        for r in scores["fused"]:
            if r["L"] in LENGTHS:
                lines.append(
                    f"| {part}, {scores['tracks']} | {r['regime']} "
                    f"| {scores['single_frame'][r['regime']]:.3f} | {r['L']} "
                    f"| {_with_interval(r, 'accuracy')} | {r['nll']:.3f} | {r['ece']:.3f} |"
                )
    return [*lines, ""]


def _parameters(bundle: Bundle) -> int:
    return sum(array.size for name, array in bundle.tensors.items() if name.startswith("network."))


def evaluation(record: dict[str, Any]) -> list[str]:
    networks, default = record["bundle"]["networks"], record["default_fuser"]
    found = {(r["fuser"], r["regime"], r["L"]): r for r in record["results"] if r["C"] == networks}
    lines = [
        f"Test: {record['tracks']} tracks, {networks} networks, measured by",
        "",
        "```",
        record["command"],
        "```",
        "",
    ]
    lines += [
        "(any of these can be set in the place of the default; the file holds the values of all fusers)",
        "",
        "| fuser | regime | L | accuracy | NLL | ECE | class flips per track |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(("last", "mean_pmf", "pool", "reliable_pool", "dual_pool", default)):
        for regime in ("clean", "hard", "mixed"):
            lines += [
                _row(f"`{name}`" + (" (default)" if name == default else ""), found[name, regime, length])
                for length in LENGTHS
                if (name, regime, length) in found
            ]
    lines.append("")
    return lines + _ood(record, networks)


def _row(name: str, r: dict[str, Any]) -> str:
    return (
        f"| {name} | {r['regime']} | {r['L']} | {_with_interval(r, 'accuracy')} | {_with_interval(r, 'nll')} "
        f"| {r['ece']:.3f} | {r['flips']:.2f} |"
    )


def _with_interval(record: dict[str, Any], name: str) -> str:
    low, high = record[f"{name}_interval"]
    return f"{record[name]:.3f} [{low:.3f}, {high:.3f}]"


def _ood(record: dict[str, Any], networks: int) -> list[str]:
    if not record.get("ood"):
        return []
    found = {(r["score"], r["regime"], r["L"]): r for r in record["ood"] if r["C"] == networks}
    lines = [
        f"Out of distribution ({record['outside_tracks']} tracks of things never trained on), "
        "AUROC at L = 1 / 3 / 10:",
        "",
        "| score | clean | hard | mixed |",
        "|---|---|---|---|",
    ]
    for score in dict.fromkeys(r["score"] for r in record["ood"]):
        cells = [
            " / ".join(
                f"{found[score, regime, n]['auroc']:.3f}" for n in (1, 3, 10) if (score, regime, n) in found
            )
            for regime in ("clean", "hard", "mixed")
        ]
        lines.append(f"| {score} | {' | '.join(cells)} |")
    return [*lines, ""]


def switch(record: dict[str, Any]) -> list[str]:
    if not record.get("switch"):
        return []
    lines = [
        "Identity switches found within 5 and 15 frames, and false alarms per track:",
        "",
        "| regime | 5 frames | 15 frames | false alarms |",
        "|---|---|---|---|",
    ]
    for r in record["switch"]:
        lines.append(
            f"| {r['regime']} | {r['detection_5']:.3f} | {r['detection_15']:.3f} | {r['false_alarm']:.3f} |"
        )
    return [*lines, ""]


def compression(path: Path) -> list[str]:
    """What JPEG does to the test tracks."""
    record = read(path)
    lines = [
        "On compressed images (JPEG 4:2:0, the image of each frame as a whole), all frames of a track:",
        "",
        "```",
        record["command"],
        "```",
        "",
        "| images | single frame right | right at last | ever called out of distribution |",
        "|---|---|---|---|",
    ]
    for row in record["qualities"]:
        quality, tracks = row["jpeg_quality"], row["tracks"]
        alarms = row["out_of_distribution"]
        lines.append(
            f"| {'as recorded' if quality is None else f'JPEG, quality {quality}'} "
            f"| {row['single_frame_accuracy']:.3f} | {row['right_at_last']} of {tracks} "
            f"| {alarms}, {alarms / tracks:.1%} |"
        )
    return [*lines, ""]


def errors(path: Path) -> list[str]:
    """The tracks that are wrong, one by one."""
    record = read(path)
    wrong, frames = record["wrong"], record["frames"]
    lines = [
        f"Wrong after {frames} clean frames: {len(wrong)} of {record['tracks']} tracks; one track is "
        f"{1 / record['tracks']:.3f} of accuracy.",
        "",
        "```",
        record["command"],
        "```",
        "",
        "![the tracks that are wrong](images/models-errors.png)",
        "",
        "| track | truth | shown as | frames right, by network | right in variations of image and box |",
        "|---|---|---|---|---|",
    ]
    for each in wrong:
        right = ", ".join(str(count) for count in each["right_frames_of_each_network"])
        lines.append(
            f"| {each['track']} | {each['truth']} | {each['shown']} ({each['probability']:.0%}) "
            f"| {right} of {each['frames']} | {len(each['right_when'])} of {each['variations']} |"
        )
    return [*lines, ""]


def precision(path: Path) -> list[str]:
    """What running the networks in 8 bits changes."""
    record = read(path)
    lines = [
        "In 8 bits, as nodes and replay run the networks on an x86 CPU, against float32 "
        f"(`{record['fuser']}`, L = {record['L']}, the same {record['tracks']} test tracks, float32 → int8):",
        "",
        "```",
        record["command"],
        "```",
        "",
    ]
    scores = [name for name in ("accuracy", "nll", "ece", "auroc") if f"{name}_int8" in record["regimes"][0]]
    heads = {"accuracy": "accuracy", "nll": "NLL", "ece": "ECE", "auroc": "AUROC of the warning"}
    head = ["regime", *(heads[name] for name in scores), "same fused class", "total variation"]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in record["regimes"]:
        pairs = [f"{row[f'{name}_float32']:.4f} → {row[f'{name}_int8']:.4f}" for name in scores]
        cells = [row["regime"], *pairs, f"{row['same_class']:.1%}", f"{row['total_variation']:.4f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


def drives(path: Path) -> list[str]:
    """Warnings over whole drives, in the place of tracks cut out of them."""
    if not path.exists():
        return []
    record = read(path)
    lines = [
        "Warnings over whole drives through other countries, by day, dusk and rain, "
        f"{'raw images' if record['jpeg_quality'] is None else 'images as JPEG'} "
        f"({record['mean_views']:.0f} views per object):",
        "",
        "```",
        record["command"],
        "```",
        "",
        f"Unknown objects found: {record['found']} of {record['unknown_tracks']}. Signs ever warned of:",
        "",
        "| signs | "
        + " | ".join(
            f"{name.replace('_', ' ')} ({rate:.0%} stated)" for name, rate in record["stated_rate"].items()
        )
        + " |",
        "|---" * (1 + len(record["stated_rate"])) + "|",
    ]
    for name in ("in_full_view", "partly_hidden"):
        part = record[name]
        cells = " | ".join(
            f"{part[reason]}, {part[reason] / part['tracks']:.1%}" for reason in record["stated_rate"]
        )
        lines.append(f"| {name.replace('_', ' ')}, {part['tracks']} | {cells} |")
    return [*lines, ""]


def repulsion(path: Path) -> str:
    if not path.exists():
        return ""
    document = read(path)
    lines = [
        "## What repulsive training does",
        "",
        "A kernel on the members' predictions pushes them apart (`--repulsion`). Small networks on the GTSRB",
        "protocol split, no synthetic outliers in training, single test frames under all regimes,",
        "temperature-scaled; outside: the held-out classes.",
        "",
        "```",
        document["command"],
        "```",
        "",
        "| strength | disagreement | total variation | accuracy | NLL of a member | NLL of the ensemble "
        "| AUROC entropy | AUROC mutual information |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in document["records"]:
        low, high = r["ensemble_nll_interval"]
        lines.append(
            f"| {r['repulsion']:g} | {r['disagreement']:.3f} | {r['total_variation']:.3f} "
            f"| {r['accuracy']:.3f} "
            f"| {r['member_nll']:.3f} | {r['ensemble_nll']:.3f} [{low:.3f}, {high:.3f}] "
            f"| {r['ood_auroc_entropy']:.3f} | {r['ood_auroc_information']:.3f} |"
        )
    return "\n".join([*lines, ""])
