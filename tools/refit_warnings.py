"""Fit the answers "unknown" and "cannot tell" of a bundle again, on its own validation tracks.

Networks, posterior, fusers and the tests that compare views with each other stay as they are.

Example:
    python tools/refit_warnings.py gtsrb --dataset gtsrb --root data/GTSRB --background data/Karoo \\
        --out gtsrb.safetensors
    python tools/refit_warnings.py signworld --dataset signworld --out signworld.safetensors
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

import torch

from lla_fusion_ros.bundle import load_bundle, save_bundle
from lla_fusion_ros.bundle.resources import find_model
from lla_fusion_ros.cli.work_progress import WorkProgress
from lla_fusion_ros.lab.calibration.refit import LONGEST, refit_bundle
from lla_fusion_ros.lab.datasets import load_dataset, recorded_split

FRESH_TRACKS, FRESH_SEED = 119, 31  # of the sign world: no tracks of any bundle


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bundle", help="a model file, or the name of one that ships")
    parser.add_argument("--dataset", required=True, help="the data set that it was trained on")
    parser.add_argument("--root", help="folder of the data set")
    parser.add_argument("--background", help="folder of natural images (drawn scenery and textures only)")
    parser.add_argument("--outliers", type=int, default=360, help="tracks of each kind (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="the bundle to write")
    args = parser.parse_args()
    torch.set_num_threads(1)
    bundle = load_bundle(find_model(args.bundle))
    if args.dataset == "signworld":  # new tracks are as good as kept ones, and sooner rendered
        validation = load_dataset("signworld", None, tracks=FRESH_TRACKS, frames=LONGEST, seed=FRESH_SEED)
    else:
        tracks = load_dataset(args.dataset, args.root)
        if tracks.digest != bundle.meta.dataset["digest"]:
            parser.error(f"bundle '{args.bundle}' was trained on other data than this '{args.dataset}'")
        validation = recorded_split(tracks, bundle.meta.dataset).validation
    command = shlex.join(["python", "tools/refit_warnings.py", *sys.argv[1:]])
    with WorkProgress() as progress:
        progress.stage("views under all conditions")
        fitted = refit_bundle(
            bundle, validation, args.background, args.outliers, args.seed, command, progress.crops
        )
    print(f"{args.out}: {save_bundle(fitted, args.out)[:12]}")


if __name__ == "__main__":
    main()
