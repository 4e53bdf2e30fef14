"""What repulsive training does to diversity, NLL and out-of-distribution detection; writes a JSON record.

Example: python tools/measure_repulsion.py --root data/GTSRB --json docs/results/repulsion.json
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lla_fusion_ros.calibration.collect import views_of_tracks
from lla_fusion_ros.calibration.temperature import fit_temperatures, scaled
from lla_fusion_ros.datasets import Splits, load_dataset, split_tracks
from lla_fusion_ros.metrics import auroc, bootstrap_interval, nll
from lla_fusion_ros.networks import Ensemble
from lla_fusion_ros.pmf import entropy, softmax
from lla_fusion_ros.track_views import TrackViews
from lla_fusion_ros.training.data import training_data
from lla_fusion_ros.training.settings import TrainSettings
from lla_fusion_ros.training.train import train_ensemble
from lla_fusion_ros.views import Views

HOLDOUT = (6, 12, 13, 15, 17, 32, 38, 40)  # METHOD 8


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", required=True, help="folder of GTSRB")
    parser.add_argument("--json", required=True, help="file to write")
    parser.add_argument("--strengths", default="0,0.1,0.5", help="of the repulsion (%(default)s)")
    parser.add_argument("--members", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--epochs", type=int, default=6, help="(%(default)s)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    splits = split_tracks(load_dataset("gtsrb", args.root), HOLDOUT)
    records = []
    for strength in (float(word) for word in args.strengths.split(",")):
        settings = TrainSettings(
            architecture={"name": "road", "size": 32, "channels": [16, 32, 64], "width": 48},
            members=args.members,
            epochs=args.epochs,
            outliers=0.0,  # outlier exposure would hide what repulsion alone does to detection
            repulsion=strength,
        )
        records.append({"repulsion": strength, **measure(splits, settings)})
        print(json.dumps(records[-1]), file=sys.stderr, flush=True)
    document = {"command": " ".join(["python", *sys.argv]), "records": records}
    Path(args.json).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def measure(splits: Splits, settings: TrainSettings) -> dict[str, Any]:
    """Train one ensemble and score single test frames, temperature-scaled on validation frames."""
    data = training_data(splits.train, settings)
    members = train_ensemble(data, len(splits.train.class_names), settings, torch.device("cpu"))
    ensemble = Ensemble(members)

    def classify(crops: np.ndarray) -> Views:
        with torch.inference_mode():
            logits, features = ensemble(settings.normalisation(torch.from_numpy(np.ascontiguousarray(crops))))
        return Views(logits.numpy(), features.numpy())

    def views(part: str) -> TrackViews:
        return views_of_tracks(classify, getattr(splits, part), settings.size, settings.margin, longest=10)

    temperatures = fit_temperatures(views("validation"))
    inside, outside = scaled(views("test"), temperatures), scaled(views("outside"), temperatures)
    pmf, label, track = _pmfs(inside)
    strange, _, _ = _pmfs(outside)
    mean = pmf.mean(axis=1)
    apart = [
        0.5 * np.abs(pmf[:, a] - pmf[:, b]).sum(axis=1) for a in range(pmf.shape[1]) for b in range(a)
    ]  # total variation of every pair of members
    disagree = [
        (pmf[:, a].argmax(1) != pmf[:, b].argmax(1)).mean() for a in range(pmf.shape[1]) for b in range(a)
    ]
    known = np.r_[np.zeros(len(mean)), np.ones(len(strange))].astype(bool)
    information = [entropy(p.mean(axis=1)) - entropy(p).mean(axis=1) for p in (pmf, strange)]
    return {
        "frames": len(mean),
        "total_variation": float(np.mean(apart)),
        "disagreement": float(np.mean(disagree)),
        "accuracy": float((mean.argmax(axis=1) == label).mean()),
        "member_nll": float(np.mean([nll(pmf[:, c], label) for c in range(pmf.shape[1])])),
        "ensemble_nll": nll(mean, label),
        "ensemble_nll_interval": list(
            bootstrap_interval(mean, label, statistic=nll, track=track, resamples=200)
        ),
        "ood_auroc_entropy": auroc(np.r_[entropy(mean), entropy(strange.mean(axis=1))], known),
        "ood_auroc_information": auroc(np.concatenate(information), known),
    }


def _pmfs(tracks: TrackViews) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """pmf [n, networks, classes], label [n], object [n] of all views."""
    logits, _, label = tracks.flat()
    return softmax(logits.astype(np.float64)), label, np.repeat(tracks.source, tracks.steps)


if __name__ == "__main__":
    main()
