"""How often ordinary objects are warned of, and unknown ones found, over whole sign-world drives.

Every drive has another country, weather, road and set of objects; there are no mishaps but weather and
occlusion, so that every warning about an object of a known class is a false alarm. Images are compressed as
in a bag, unless `--raw` is given.

Example: python tools/measure_false_alarms.py models/signworld.safetensors --drives 12 --json alarms.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.progress import track as shown

from lla_fusion_ros.bundle import Bundle, load_bundle
from lla_fusion_ros.crops import Pixels, cut_crops
from lla_fusion_ros.makebag.write import JPEG_QUALITY
from lla_fusion_ros.pipeline import Classifier, FusionEngine, FusionSettings, Observation
from lla_fusion_ros.signworld import Conditions, Drive, DriveSettings, Stretch
from lla_fusion_ros.signworld.optics import through_jpeg
from lla_fusion_ros.warnings.result import REASONS

DUSK = Conditions(light=0.32, blur=1.1, smear=2.0, noise=0.03, jitter=0.05)
RAIN = Conditions(light=0.75, blur=0.7, noise=0.015, rain=0.8, jitter=0.035)
HIDDEN = 1 / 3  # an object more than so much covered at some time is told apart
FEWEST_VIEWS = 3  # as many as the warnings ask for


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bundle", help="a bundle of the sign world's classes")
    parser.add_argument("--drives", type=int, default=12, help="(%(default)s)")
    parser.add_argument("--first-seed", type=int, default=500, help="(%(default)s)")
    parser.add_argument("--raw", action="store_true", help="images as the sensor has them, not as JPEG")
    parser.add_argument("--json", help="file to write")
    args = parser.parse_args()
    torch.set_num_threads(1)
    bundle = load_bundle(args.bundle)
    seeds = range(args.first_seed, args.first_seed + args.drives)
    quality = None if args.raw else JPEG_QUALITY
    tracks = [
        track for seed in shown(seeds, "driving") for track in drive_tracks(bundle, weather(seed), quality)
    ]
    record = {
        "command": " ".join(["python", *sys.argv]),
        "bundle": bundle.hash,
        "jpeg_quality": quality,
        **summary(tracks),
    }
    print(json.dumps(record, indent=1))
    if args.json:
        Path(args.json).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def weather(seed: int) -> DriveSettings:
    """A drive of 24 s: the first third fair, then dusk, then rain."""
    stretches = (Stretch(8.0, 15.0, DUSK), Stretch(17.0, 23.0, RAIN))
    return DriveSettings(seed=seed, duration=24.0, stretches=stretches, outside_share=0.2)


def drive_tracks(bundle: Bundle, settings: DriveSettings, quality: int | None) -> list[dict[str, Any]]:
    """Each object of a drive: known or not, its views, the reasons it was ever warned of."""
    classify = Classifier(bundle, "cpu", "auto")  # as on a vehicle
    engine = FusionEngine(bundle, FusionSettings())
    seen: dict[str, dict[str, Any]] = defaultdict(lambda: {"views": 0, "reasons": set(), "hidden": 0.0})
    for frame in Drive(settings):
        if not len(frame.ids):
            continue
        image = frame.image if quality is None else through_jpeg(frame.image, quality)
        crops = cut_crops(Pixels(image, "rgb"), frame.boxes, bundle.input_size, bundle.crop_margin)
        result = engine.update(Observation(frame.camera, frame.stamp, frame.ids, classify(crops)))
        for position, verdict in zip(result.kept, result.verdicts, strict=True):
            track = seen[frame.ids[position]]
            track["views"] += 1
            track["hidden"] = max(track["hidden"], float(frame.hidden[position]))
            track["label"] = int(frame.labels[position])
            track["right"] = verdict.top == track["label"]
            track["reasons"].update(verdict.reasons)
    return [track for track in seen.values() if track["views"] >= FEWEST_VIEWS]


def summary(tracks: list[dict[str, Any]]) -> dict[str, Any]:
    known = [track for track in tracks if track["label"] >= 0]
    unknown = [track for track in tracks if track["label"] < 0]
    return {
        "mean_views": float(np.mean([track["views"] for track in tracks])),
        "stated_rate": {
            "out_of_distribution": FusionSettings().ood_false_alarm,
            "identity_switch": FusionSettings().switch_false_alarm,
            "camera_disagreement": FusionSettings().disagreement_false_alarm,
        },
        "in_full_view": warned([track for track in known if track["hidden"] <= HIDDEN]),
        "partly_hidden": warned([track for track in known if track["hidden"] > HIDDEN]),
        "unknown_tracks": len(unknown),
        "found": sum("out_of_distribution" in track["reasons"] for track in unknown),
    }


def warned(known: list[dict[str, Any]]) -> dict[str, Any]:
    """How many objects of known classes were ever warned of, and why."""
    return {
        "tracks": len(known),
        "right_at_last": sum(track["right"] for track in known),
        "warned": sum(bool(track["reasons"]) for track in known),
        **{name: sum(name in track["reasons"] for track in known) for name in REASONS},
    }


if __name__ == "__main__":
    main()
