"""What 8 bits change: a bundle's test tracks with its networks in float32 and in int8.

Prints, for each regime, accuracy, NLL and ECE of the default fuser after 10 frames, how often the fused class
is the same, how far the distributions are apart, and the AUROC of the warning where classes were held out.

Example:
    python tools/measure_precision.py models/gtsrb.safetensors --dataset gtsrb --root data/GTSRB \\
        --json docs/results/precision_gtsrb.json
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lla_fusion_ros.bundle import Bundle, load_bundle
from lla_fusion_ros.cli.work_progress import WorkProgress
from lla_fusion_ros.datasets import REGIMES, load_dataset
from lla_fusion_ros.evaluation.outputs import default_cache
from lla_fusion_ros.evaluation.run import Evaluation, Options, evaluate
from lla_fusion_ros.evaluation.selection import Selection, select_tracks

PRECISIONS = ("float32", "int8")
LENGTH = 10
SCORE = "combined"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bundle", help="a bundle that was trained on the data set")
    parser.add_argument("--dataset", required=True, help="its data set")
    parser.add_argument("--root", help="folder of the data set")
    parser.add_argument("--draws", type=int, default=5, help="of every degraded track (%(default)s)")
    parser.add_argument("--json", type=Path, help="file to write")
    args = parser.parse_args()
    torch.set_num_threads(1)
    bundle = load_bundle(args.bundle)
    with WorkProgress() as progress:
        progress.stage(f"loading {args.dataset}")
        selection = select_tracks(
            bundle, load_dataset(args.dataset, args.root, progress.tracks), split="test"
        )
        found = {name: _evaluated(bundle, selection, name, args.draws, progress) for name in PRECISIONS}
    rows = [_row(bundle, regime, found) for regime in REGIMES]
    record = {
        "command": " ".join(["python", *sys.argv]),
        "bundle": bundle.hash,
        "fuser": bundle.meta.default_fuser,
        "tracks": len(selection.inside.tracks),
        "outside_tracks": len(selection.outside.tracks),
        "draws": args.draws,
        "L": LENGTH,
        "regimes": rows,
    }
    for row in rows:
        print(json.dumps(row))
    if args.json:
        args.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _evaluated(
    bundle: Bundle, selection: Selection, precision: str, draws: int, progress: WorkProgress
) -> Evaluation:
    options = Options(
        lengths=(1, LENGTH),
        networks=(bundle.networks,),
        fusers=tuple({"pool", bundle.meta.default_fuser}),
        draws=draws,
        precision=precision,
    )
    return evaluate(bundle, selection, options, default_cache(), progress)


def _row(bundle: Bundle, regime: str, found: dict[str, Evaluation]) -> dict[str, Any]:
    """Both precisions of one regime side by side, and how far they are apart."""
    key = bundle.meta.default_fuser, regime, bundle.networks, LENGTH
    row: dict[str, Any] = {"regime": regime}
    for precision, evaluation in found.items():
        scores = next(r for r in evaluation.results if (r["fuser"], r["regime"], r["C"], r["L"]) == key)
        row |= {f"{name}_{precision}": round(scores[name], 4) for name in ("accuracy", "nll", "ece")}
        for each in evaluation.ood:
            if (each["score"], each["regime"], each["C"], each["L"]) == (SCORE, *key[1:]):
                row[f"auroc_{precision}"] = round(each["auroc"], 4)
    exact, rounded = (found[precision].pmfs[key] for precision in PRECISIONS)
    row["same_class"] = round(float(np.mean(exact.argmax(axis=1) == rounded.argmax(axis=1))), 4)
    row["total_variation"] = round(float(np.abs(exact - rounded).sum(axis=1).mean() / 2), 5)
    return row


if __name__ == "__main__":
    main()
