"""How often known objects are called unknown under each condition, and how often strangers are found.

Known: the test tracks that the bundle kept aside. Strangers, none of which were fitted against: Belgian signs
that Germany lacks, random boxes in street scenes, drawn background. A track counts as unknown, or as one that
cannot be told, if it ever is called so at the bundle's stated rate.

Example:
    python tools/measure_warnings.py gtsrb --dataset gtsrb --root data/GTSRB --belgium data/BelgiumTSC \\
        --streets data/DDAD_mini --json gtsrb_warnings.json
    python tools/measure_warnings.py signworld --dataset signworld
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.bundle.resources import find_model
from lla_fusion_ros.lab.datasets import TrackSet, load_dataset
from lla_fusion_ros.lab.datasets.background import background_tracks
from lla_fusion_ros.lab.datasets.conditions import CONDITIONS, UNREADABLE
from lla_fusion_ros.lab.datasets.strangers import BELGIAN_NOT_GERMAN
from lla_fusion_ros.lab.evaluation.selection import select_tracks
from lla_fusion_ros.lab.evaluation.warning_rates import condition_rates
from lla_fusion_ros.networks.classifier import Classifier

SEED = 7000  # no seed that warnings are fitted with
AS_RECORDED = ("as recorded",)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bundle", help="a model file, or the name of one that ships")
    parser.add_argument("--dataset", required=True, help="the data set that it was trained on")
    parser.add_argument("--root", help="folder of the data set")
    parser.add_argument("--belgium", help="folder of BelgiumTSC, for a bundle of German signs")
    parser.add_argument("--streets", help="folder of street scenes; random boxes in them are background")
    parser.add_argument("--precision", default="auto", help="of the networks (%(default)s)")
    parser.add_argument("--json", type=Path, help="file to write")
    args = parser.parse_args()
    torch.set_num_threads(1)
    bundle = load_bundle(find_model(args.bundle))
    classify = Classifier(bundle, "cpu", args.precision)
    known = select_tracks(bundle, load_dataset(args.dataset, args.root), "test").inside
    record: dict[str, Any] = {
        "command": " ".join(["python", "tools/measure_warnings.py", *sys.argv[1:]]),
        "bundle": {"hash": bundle.hash},
        "known": condition_rates(bundle, classify, known, (*CONDITIONS, *UNREADABLE), SEED),
        "strangers": [
            {**condition_rates(bundle, classify, tracks, AS_RECORDED, SEED)[0], "condition": name}
            for name, tracks in strangers(args).items()
        ],
    }
    for name in ("known", "strangers"):
        Console().print(table(name, record[name]))
    if args.json:
        args.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def strangers(args: argparse.Namespace) -> dict[str, TrackSet]:
    found = {"drawn background": background_tracks(400, seed=SEED)}
    if args.streets:
        found["boxes in street scenes"] = background_tracks(400, seed=SEED, folder=args.streets, natural=1.0)
    if args.belgium:
        signs = load_dataset("belgiumtsc", args.belgium)
        chosen = [track for track in signs.tracks if signs.class_names[track.label] in BELGIAN_NOT_GERMAN]
        found["Belgian signs that Germany lacks"] = replace(
            signs, tracks=tuple(replace(track, label=-1) for track in chosen)
        )
    if args.dataset == "signworld":
        found["unknown objects"] = load_dataset("signworld", None, tracks=0, outside=120, seed=SEED)
    return found


def table(title: str, records: list[dict[str, Any]]) -> Table:
    shown = Table(title=title, title_justify="left")
    for name in ("condition", "tracks", "called unknown", "cannot tell", "sure and unwarned", "right"):
        shown.add_column(name, justify="left" if name == "condition" else "right")
    for each in records:
        shares = (
            f"{each[name] / max(each['tracks'], 1):.1%}"
            for name in ("unknown", "cannot_tell", "sure", "right")
        )
        shown.add_row(each["condition"], str(each["tracks"]), *shares)
    return shown


if __name__ == "__main__":
    main()
