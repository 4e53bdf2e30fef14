"""What goes wrong with a bundle as a vehicle runs it: confused classes, and warnings about ordinary objects.

With a data set: which classes of its test tracks are confused in the hard regime, and how many tracks are
warned of when every image is compressed as JPEG of falling quality. Without one: how many objects are warned
of in whole sign-world drives by day, dusk and rain. Every warning about a known class is a false alarm.

Example:
    python tools/measure_misses.py gtsrb --dataset gtsrb --root data/GTSRB --json gtsrb_misses.json
    python tools/measure_misses.py belgium --dataset belgiumtsc --root data/BelgiumTSC --frames 3
    python tools/measure_misses.py signworld --json signworld_drives.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.progress import track as shown

from lla_fusion_ros.bundle import Bundle, load_bundle
from lla_fusion_ros.bundle.resources import find_model
from lla_fusion_ros.cli.work_progress import WorkProgress
from lla_fusion_ros.engine.engine import FusionEngine, Observation
from lla_fusion_ros.images.crops import Pixels, cut_crops
from lla_fusion_ros.lab.datasets import load_dataset
from lla_fusion_ros.lab.evaluation.cached_views import default_cache
from lla_fusion_ros.lab.evaluation.evaluate import Options, evaluate
from lla_fusion_ros.lab.evaluation.selection import Selection, select_tracks
from lla_fusion_ros.lab.makebag.write import JPEG_QUALITY
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.signworld import Conditions, Drive, DriveSettings, Stretch
from lla_fusion_ros.signworld.camera import through_jpeg
from lla_fusion_ros.types.track_set import Track
from lla_fusion_ros.warnings.result import REASONS

FRAME = 100_000_000  # nanoseconds
QUALITIES = (None, 92, 85, 70)  # None: as recorded
WEAK = 0.9  # accuracy below which a class is listed
SEEDS = range(500, 512)
DUSK = Conditions(light=0.32, blur=1.1, smear=2.0, noise=0.03, jitter=0.05)
RAIN = Conditions(light=0.75, blur=0.7, noise=0.015, rain=0.8, jitter=0.035)
HIDDEN = 1 / 3  # an object more than so much covered at some time is told apart
FEWEST_VIEWS = 3  # as many as the warnings ask for


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bundle", help="a model file, or the name of one that ships")
    parser.add_argument("--dataset", help="the data set that it was trained on; none: sign-world drives")
    parser.add_argument("--root", help="folder of the data set")
    parser.add_argument("--frames", type=int, default=10, help="fused before a class counts (%(default)s)")
    parser.add_argument("--draws", type=int, default=10, help="of every degraded track (%(default)s)")
    parser.add_argument("--json", type=Path, help="file to write")
    args = parser.parse_args()
    torch.set_num_threads(1)
    bundle = load_bundle(find_model(args.bundle))
    record: dict[str, Any] = {"command": " ".join(["python", *sys.argv]), "bundle": {"hash": bundle.hash}}
    if args.dataset:
        selection = select_tracks(bundle, load_dataset(args.dataset, args.root), "test")
        record["classes"] = confused_classes(bundle, selection, args.frames, args.draws)
        record["jpeg"] = [jpeg_record(bundle, selection, quality) for quality in QUALITIES]
    else:
        record["drives"] = drives_record(bundle)
    print(json.dumps(record, indent=1))
    if args.json:
        args.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def confused_classes(bundle: Bundle, selection: Selection, frames: int, draws: int) -> dict[str, Any]:
    """The weak classes of the hard regime, the worst first, each with what it is mostly taken for."""
    options = Options(
        regimes=("hard",),
        lengths=(frames,),
        networks=(bundle.networks,),
        fusers=tuple({"pool", bundle.meta.default_fuser}),
        draws=draws,
        precision="auto",
    )
    with WorkProgress() as progress:
        found = evaluate(bundle, selection, options, default_cache(), progress)
    said = found.pmfs[bundle.meta.default_fuser, "hard", bundle.networks, frames].argmax(axis=1)
    label = found.labels["hard"]
    weak = []
    for index in np.unique(label):
        mistakes = Counter(said[(label == index) & (said != index)].tolist())
        accuracy = 1.0 - mistakes.total() / int((label == index).sum())
        if accuracy < WEAK:
            ((taken_for, _),) = mistakes.most_common(1)
            tracks = sum(bool(track.label == index) for track in selection.inside.tracks)
            weak.append(
                {
                    "class": bundle.class_names[index],
                    "tracks": tracks,
                    "accuracy": round(accuracy, 3),
                    "taken_for": bundle.class_names[taken_for],
                }
            )
    known = len({track.label for track in selection.inside.tracks})
    return {
        "regime": "hard",
        "frames": frames,
        "draws": draws,
        "classes": known,
        "weak": sorted(weak, key=lambda row: row["accuracy"]),
    }


def jpeg_record(bundle: Bundle, selection: Selection, quality: int | None) -> dict[str, Any]:
    """All test tracks with every image compressed before its box is cut out."""
    classify = Classifier(bundle, "cpu", "auto")
    name = "as recorded" if quality is None else f"JPEG {quality}"
    seen = [_watched(bundle, classify, track, quality) for track in shown(selection.inside.tracks, name)]
    return {"jpeg_quality": quality, **warned(seen)}


def _watched(bundle: Bundle, classify: Classifier, track: Track, quality: int | None) -> dict[str, Any]:
    """One track through an engine of its own."""
    engine = FusionEngine(bundle)
    reasons: set[str] = set()
    for number, frame in enumerate(track.frames, 1):
        image = frame.image if quality is None else through_jpeg(frame.image, quality)
        x0, y0, x1, y1 = frame.box
        box = np.array([[(x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0]])
        views = classify(cut_crops(Pixels(image, "rgb"), box, bundle.input_size, bundle.crop_margin))
        result = engine.update(Observation("camera", number * FRAME, (track.id,), views))
        reasons.update(result.verdicts[0].reasons)
    return {"right": bool(result.pmf[0].argmax() == track.label), "reasons": reasons}


def drives_record(bundle: Bundle) -> dict[str, Any]:
    """Drives of 24 s through other countries: the first third fair, then dusk, then rain."""
    tracks = [track for seed in shown(SEEDS, "driving") for track in _drive_tracks(bundle, seed)]
    known = [track for track in tracks if track["label"] >= 0]
    unknown = [track for track in tracks if track["label"] < 0]
    return {
        "drives": len(SEEDS),
        "mean_views": round(float(np.mean([track["views"] for track in tracks])), 1),
        "in_full_view": warned([track for track in known if track["hidden"] <= HIDDEN]),
        "partly_hidden": warned([track for track in known if track["hidden"] > HIDDEN]),
        "unknown_tracks": len(unknown),
        "found": sum("out_of_distribution" in track["reasons"] for track in unknown),
    }


def _drive_tracks(bundle: Bundle, seed: int) -> list[dict[str, Any]]:
    """Each object of a drive: known or not, its views, the reasons it was ever warned of."""
    stretches = (Stretch(8.0, 15.0, DUSK), Stretch(17.0, 23.0, RAIN))
    settings = DriveSettings(seed=seed, duration=24.0, stretches=stretches, outside_share=0.2)
    classify, engine = Classifier(bundle, "cpu", "auto"), FusionEngine(bundle)
    seen: dict[str, dict[str, Any]] = defaultdict(lambda: {"views": 0, "reasons": set(), "hidden": 0.0})
    for frame in Drive(settings):
        if not len(frame.ids):
            continue
        image = through_jpeg(frame.image, JPEG_QUALITY)
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


def warned(tracks: list[dict[str, Any]]) -> dict[str, Any]:
    """How many of these objects of known classes are right at last, and how many were ever warned of."""
    return {
        "tracks": len(tracks),
        "right_at_last": sum(track["right"] for track in tracks),
        **{name: sum(name in track["reasons"] for track in tracks) for name in REASONS},
    }


if __name__ == "__main__":
    main()
