"""What JPEG does to a bundle: accuracy and false alarms on test tracks, by the quality of the images.

Cameras mostly send JPEG with half the colour resolution; a sign of twenty pixels then has ten of colour.
Every image of a track is compressed before its box is cut out. Every warning about a test track is a false
alarm.

Example:
    python tools/measure_compression.py models/gtsrb.safetensors --dataset gtsrb --root data/GTSRB \\
        --json docs/results/compression.json
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.progress import track as shown

from lla_fusion_ros.bundle import Bundle, load_bundle
from lla_fusion_ros.crops import Pixels, cut_crops
from lla_fusion_ros.datasets import load_dataset
from lla_fusion_ros.datasets.types import Track
from lla_fusion_ros.evaluation.selection import select_tracks
from lla_fusion_ros.pipeline import Classifier, FusionEngine, Observation
from lla_fusion_ros.signworld.optics import through_jpeg
from lla_fusion_ros.warnings.result import REASONS

SECOND = 1_000_000_000
QUALITIES = (None, 97, 92, 85, 70)  # None: as recorded


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bundle", help="a bundle that was trained on the data set")
    parser.add_argument("--dataset", required=True, help="its data set")
    parser.add_argument("--root", required=True, help="folder of the data set")
    parser.add_argument("--json", type=Path, help="file to write")
    args = parser.parse_args()
    torch.set_num_threads(1)
    bundle = load_bundle(args.bundle)
    tracks = select_tracks(bundle, load_dataset(args.dataset, args.root), "test").inside.tracks
    classify = Classifier(bundle, "cpu", "auto")  # as on a vehicle
    rows = []
    for quality in QUALITIES:
        name = "as recorded" if quality is None else f"JPEG {quality}"
        seen = [watch(bundle, classify, each, quality) for each in shown(tracks, name)]
        rows.append({"jpeg_quality": quality, **summary(seen)})
        print(json.dumps(rows[-1]))
    record = {"command": " ".join(["python", *sys.argv]), "bundle": bundle.hash, "qualities": rows}
    if args.json:
        args.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def watch(bundle: Bundle, classify: Classifier, track: Track, quality: int | None) -> dict[str, Any]:
    """One track through an engine of its own: right frames, right at last, the reasons it was warned of."""
    engine = FusionEngine(bundle)
    right: list[bool] = []
    reasons: set[str] = set()
    for number, frame in enumerate(track.frames, 1):
        image = frame.image if quality is None else through_jpeg(frame.image, quality)
        x0, y0, x1, y1 = frame.box
        box = np.array([[(x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0]])
        views = classify(cut_crops(Pixels(image, "rgb"), box, bundle.input_size, bundle.crop_margin))
        result = engine.update(Observation("camera", number * SECOND // 10, (track.id,), views))
        right.append(bool(views.logits.mean(axis=1).argmax() == track.label))
        reasons.update(result.verdicts[0].reasons)
    return {
        "frames": right,
        "at_last": bool(result.pmf[0].argmax() == track.label),
        "reasons": reasons,
    }


def summary(seen: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "tracks": len(seen),
        "single_frame_accuracy": round(float(np.mean([hit for each in seen for hit in each["frames"]])), 4),
        "right_at_last": sum(each["at_last"] for each in seen),
        "warned": sum(bool(each["reasons"]) for each in seen),
        **{name: sum(name in each["reasons"] for each in seen) for name in REASONS},
    }


if __name__ == "__main__":
    main()
