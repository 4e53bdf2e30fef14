"""Which test tracks a bundle gets wrong, and a picture of them: the first thing to do with a score.

A track is listed where the default fuser shows a wrong class after `--frames` frames as they were recorded.
It is then shown to the networks again in small variations (brighter, darker, grey, blurred, other boxes): an
error that none of them moves is not a matter of a few pixels.

Example:
    python tools/show_errors.py models/gtsrb.safetensors --dataset gtsrb --root data/GTSRB \\
        --json errors.json --picture errors.png
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch

from lla_fusion_ros.bundle import Bundle, load_bundle
from lla_fusion_ros.classifier import Classifier
from lla_fusion_ros.crops import Pixels, cut_crops
from lla_fusion_ros.datasets import Track, load_dataset
from lla_fusion_ros.evaluation.selection import select_tracks
from lla_fusion_ros.fusion.base import Fuser
from lla_fusion_ros.plots.style import figure

Change = Callable[[np.ndarray], np.ndarray]
COLUMNS = 8  # frames of a track in the picture


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bundle", help="a bundle that was trained on the data set")
    parser.add_argument("--dataset", required=True, help="its data set")
    parser.add_argument("--root", help="folder of the data set")
    parser.add_argument(
        "--frames", type=int, default=10, help="after which the class is judged (%(default)s)"
    )
    parser.add_argument("--json", type=Path, help="file to write")
    parser.add_argument("--picture", type=Path, help="picture to write")
    args = parser.parse_args()
    torch.set_num_threads(1)
    bundle = load_bundle(args.bundle)
    tracks = select_tracks(bundle, load_dataset(args.dataset, args.root), "test").inside.tracks
    classify, fuser = Classifier(bundle, "cpu"), bundle.fuser()
    wrong = [
        track
        for track in tracks
        if fused(fuser, classify, crops_of(bundle, track, args.frames)).argmax() != track.label
    ]
    records = [describe(bundle, fuser, classify, track, args.frames) for track in wrong]
    print(f"{len(wrong)} of {len(tracks)} tracks are wrong after {args.frames} frames")
    for record in records:
        print(json.dumps(record))
    if args.json:
        document = {
            "command": " ".join(["python", *sys.argv]),
            "bundle": bundle.hash,
            "frames": args.frames,
            "tracks": len(tracks),
            "wrong": records,
        }
        args.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if args.picture and wrong:
        draw(wrong, records, args.picture)


def crops_of(
    bundle: Bundle,
    track: Track,
    frames: int | None = None,
    change: Change = lambda image: image,
    scale: float = 1.0,
    shift: float = 0.0,
) -> np.ndarray:
    """The crops of the first frames; boxes are scaled, and shifted by a share of their side."""
    crops = []
    for frame in track.frames[:frames]:
        x0, y0, x1, y1 = frame.box
        width, height = x1 - x0, y1 - y0
        box = [(x0 + x1) / 2 + shift * width, (y0 + y1) / 2 + shift * height, scale * width, scale * height]
        pixels = Pixels(np.ascontiguousarray(change(frame.image)), "rgb")
        crops.append(cut_crops(pixels, np.array([box]), bundle.input_size, bundle.crop_margin)[0])
    return np.stack(crops)


def fused(fuser: Fuser, classify: Classifier, crops: np.ndarray) -> np.ndarray:
    """The distribution after all of these crops of one track.  [classes]"""
    views, state = classify(crops), fuser.initial(1)
    for number in range(len(crops)):
        state = fuser.update(state, views.take(slice(number, number + 1)))
    return fuser.predict(state)[0]


def _gamma(power: float) -> Change:
    return lambda image: (255 * (image / 255.0) ** power).astype(np.uint8)


def _grey(image: np.ndarray) -> np.ndarray:
    return np.repeat(image.mean(axis=2, keepdims=True), 3, axis=2).astype(np.uint8)


VARIATIONS: dict[str, dict[str, Any]] = {
    "brighter": {"change": _gamma(0.5)},
    "darker": {"change": _gamma(1.6)},
    "grey": {"change": _grey},
    "blurred": {"change": lambda image: cv2.GaussianBlur(image, (3, 3), 0.8)},
    "box 10% smaller": {"scale": 0.9},
    "box 10% larger": {"scale": 1.1},
    "box shifted by 5%": {"shift": 0.05},
    "box shifted by -5%": {"shift": -0.05},
}


def describe(bundle: Bundle, fuser: Fuser, classify: Classifier, track: Track, frames: int) -> dict[str, Any]:
    """What is shown in the place of what, and whether anything changes it."""
    pmf = fused(fuser, classify, crops_of(bundle, track, frames))
    single = classify(crops_of(bundle, track)).logits  # [frames, networks, classes]
    names, shown = bundle.class_names, int(pmf.argmax())
    righted = [
        name
        for name, how in VARIATIONS.items()
        if fused(fuser, classify, crops_of(bundle, track, frames, **how)).argmax() == track.label
    ]
    votes = single.argmax(axis=2) == track.label
    return {
        "track": track.id,
        "truth": names[track.label],
        "shown": names[shown],
        "probability": round(float(pmf[shown]), 3),
        "probability_of_truth": round(float(pmf[track.label]), 3),
        "frames": len(single),
        "right_frames_of_each_network": votes.sum(axis=0).tolist(),
        "pixels": [round(frame.box[2] - frame.box[0]) for frame in (track.frames[0], track.frames[-1])],
        "variations": len(VARIATIONS),
        "right_when": righted,
    }


def draw(tracks: list[Track], records: list[dict[str, Any]], path: Path) -> None:
    with figure(path, len(tracks), COLUMNS, 9.0, 1.45 * len(tracks)) as axes:
        for row, track, record in zip(axes, tracks, records, strict=True):
            places = np.linspace(0, len(track.frames) - 1, COLUMNS).round().astype(int)
            for axis, place in zip(row, places.tolist(), strict=True):
                axis.imshow(track.frames[place].image, interpolation="bicubic")
                axis.axis("off")
            text = f"{record['track']}: {record['truth']}, shown as {record['shown']}"
            row[0].set_title(" ")  # room for the text, which is wider than a frame
            row[0].text(0.0, 1.08, text, transform=row[0].transAxes).set_in_layout(False)


if __name__ == "__main__":
    main()
