"""The most memory that `lla-fusion evaluate` takes: so many tracks, every draw, regime and length.

The posterior, the fusers and the warnings are those of a bundle; its networks are replaced by small random
ones with as many outputs, since running them takes an hour and little memory. The last tracks play the
outside world.

Example:
    python tools/measure_evaluation_memory.py --tracks 2000 --json memory.json
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from lla_fusion_ros.bundle import Bundle, load_bundle, make_bundle
from lla_fusion_ros.cli.words import words
from lla_fusion_ros.cli.work_progress import WorkProgress
from lla_fusion_ros.datasets import Frame, Track, TrackSet
from lla_fusion_ros.evaluation.run import Options, evaluate
from lla_fusion_ros.evaluation.selection import Selection
from lla_fusion_ros.memory import keep_freed_memory
from lla_fusion_ros.networks import build_network
from lla_fusion_ros.resources import find_model

SIDE = 60  # pixels of an image
OUTSIDE = 0.1  # of the tracks


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bundle", default="gtsrb", help="a bundle, or the name of one that ships (gtsrb)")
    parser.add_argument("--tracks", type=int, default=2000, help="(%(default)s)")
    parser.add_argument("--frames", type=int, default=30, help="of each track (%(default)s)")
    parser.add_argument("--draws", type=int, default=5, help="(%(default)s)")
    parser.add_argument("--fusers", default="", help="names, separated by commas (all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there")
    args = parser.parse_args()
    keep_freed_memory()  # as the verb does
    bundle = with_small_networks(load_bundle(find_model(args.bundle)))
    selection = random_selection(bundle, args.tracks, args.frames)
    options = Options(draws=args.draws, fusers=tuple(words(args.fusers)))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as cache, WorkProgress() as progress:
        evaluate(bundle, selection, options, Path(cache), progress)
    record = {
        "tracks": args.tracks,
        "frames": args.frames,
        "draws": args.draws,
        "fusers": list(options.fusers) or "all",
        "networks": bundle.networks,
        "classes": bundle.classes,
        "peak_gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
        "minutes": round((time.monotonic() - began) / 60, 1),
    }
    print(json.dumps(record))
    if args.json:
        args.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def with_small_networks(bundle: Bundle) -> Bundle:
    """The same bundle with quick networks of as many features; their weights are random."""
    width = bundle.posterior().features - 1
    architecture = {"name": "road", "size": bundle.input_size, "channels": [2, 4, 4], "width": width}
    torch.manual_seed(0)
    members = [build_network(architecture, bundle.classes).eval() for _ in range(bundle.networks)]
    model = bundle.warning_model()
    arrays = {} if model is None else model.to_parts()[0]
    return make_bundle(replace(bundle.meta, architecture=architecture), members, bundle.posterior(), arrays)


def random_selection(bundle: Bundle, tracks: int, frames: int) -> Selection:
    """Tracks of noise; a tenth of them are of no class."""
    rng = np.random.default_rng(0)
    box = (5.0, 5.0, SIDE - 5.0, SIDE - 5.0)
    made = []
    for number in range(tracks):
        images = rng.integers(0, 256, (frames, SIDE, SIDE, 3), np.uint8)
        label = number % bundle.classes if number < (1 - OUTSIDE) * tracks else -1
        made.append(Track(f"{number}", label, tuple(Frame(image, box) for image in images)))
    inside = tuple(track for track in made if track.label >= 0)
    outside = tuple(track for track in made if track.label < 0)
    whole = TrackSet("noise", bundle.class_names, inside, f"{tracks} {frames}")
    return Selection(whole, replace(whole, tracks=outside))


if __name__ == "__main__":
    main()
