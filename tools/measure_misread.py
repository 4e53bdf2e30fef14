"""How much of a fused NLL comes from objects that the networks misread, and how low any fit could bring it.

An object is misread where the mean pmf of all its views is wrong in most draws of the degradation. Of every
fuser the mean NLL is split into the share of those objects and the share of the rest. Then the same fusers
are fitted once more, to the very test tracks: what even that does not reach is asked of the networks, not of
the fuser. The parts into which a data set comes divided are also judged apart, and rare classes are counted:
those with RARE training tracks or fewer.

Example:
    python tools/measure_misread.py models/belgium.safetensors --dataset belgiumtsc --root data/BelgiumTSC
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
from lla_fusion_ros.calibration import joined
from lla_fusion_ros.calibration.fusers import MeasuredTracks, fit_fuser, measure_tracks
from lla_fusion_ros.cli.work_progress import WorkProgress
from lla_fusion_ros.datasets import REGIMES, Regime, TrackSet, load_dataset, recorded_split
from lla_fusion_ros.evaluation.fused import fuse_tracks
from lla_fusion_ros.evaluation.outputs import default_cache, network_outputs
from lla_fusion_ros.evaluation.scores import TrackScores, track_scores
from lla_fusion_ros.evaluation.selection import select_tracks
from lla_fusion_ros.fusion import make_fuser

BASELINE = "mean_pmf"
LEARNED = ("pool", "dual_pool")
RARE = 5


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bundles", nargs="+", help="bundles that were trained on the data set")
    parser.add_argument("--dataset", required=True, help="their data set")
    parser.add_argument("--root", help="folder of the data set")
    parser.add_argument("--regime", choices=REGIMES, default="hard", help="how degraded (%(default)s)")
    parser.add_argument("--views", type=int, default=3, help="of each object (%(default)s)")
    parser.add_argument("--draws", type=int, default=10, help="of the degradation (%(default)s)")
    parser.add_argument("--json", type=Path, help="file to write")
    args = parser.parse_args()
    torch.set_num_threads(1)
    records = []
    with WorkProgress() as progress:
        progress.stage(f"loading {args.dataset}")
        trackset = load_dataset(args.dataset, args.root, progress.tracks)
        for file in args.bundles:
            bundle = load_bundle(file)
            tracks = select_tracks(bundle, trackset, "test").inside
            progress.stage(f"{file}: networks")
            measured = views(bundle, tracks, args.regime, args.views, args.draws)
            progress.stage(f"{file}: fits to the test tracks")
            records.append({"file": Path(file).name, "bundle": bundle.hash})
            trained = [track.label for track in recorded_split(trackset, bundle.meta.dataset).train.tracks]
            rare = np.bincount(trained, minlength=bundle.classes) <= RARE
            records[-1] |= judged(bundle, tracks, measured, args.views, rare)
    for record in records:
        show(record)
    if args.json:
        document = {
            "command": " ".join(["python", *sys.argv]),
            "dataset": trackset.digest,
            "regime": args.regime,
            "views": args.views,
            "draws": args.draws,
            "bundles": records,
        }
        args.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def views(bundle: Bundle, tracks: TrackSet, regime: Regime, length: int, draws: int) -> MeasuredTracks:
    """What the networks say in every draw; the draws are those of `lla-fusion evaluate`."""
    outputs = [
        network_outputs(bundle, tracks, regime, seed, length, default_cache())
        for seed in range(1, 1 + (1 if regime == "clean" else draws))
    ]
    return measure_tracks(bundle.posterior(), joined(outputs))


def judged(
    bundle: Bundle, tracks: TrackSet, measured: MeasuredTracks, length: int, rare: np.ndarray
) -> dict[str, Any]:
    """Counts and NLLs of one bundle; `rare` marks the classes of which it saw few objects.  [classes]"""
    count = len(tracks.tracks)
    baseline = scores(bundle, BASELINE, {}, measured, length)
    misread = baseline.correct.reshape(-1, count).mean(axis=0) < 0.5
    part = np.array([track.part for track in tracks.tracks])
    of_rare = rare[[track.label for track in tracks.tracks]]
    fusers: dict[str, Any] = {}
    for name in (BASELINE, *LEARNED):
        own = scores(bundle, name, bundle.meta.fusers.get(name, {}), measured, length)
        nll = own.nll.reshape(-1, count).mean(axis=0)
        fusers[name] = {
            "nll": float(nll.mean()),
            "nll_misread": float(nll[misread].sum() / count),
            "nll_rest": float(nll[~misread].sum() / count),
            "accuracy": float(own.correct.mean()),
            "nll_of_part": {str(each): float(nll[part == each].mean()) for each in np.unique(part)},
        }
        if name in LEARNED:
            values = fit_fuser(name, bundle.posterior(), measured, (1, length))
            fitted = scores(bundle, name, values, measured, length)
            fusers[name]["nll_fitted_to_these"] = float(fitted.nll.mean())
    parts = {str(each): int((part == each).sum()) for each in np.unique(part)}
    return {
        "tracks": count,
        "tracks_of_rare": int(of_rare.sum()),
        "misread": int(misread.sum()),
        "misread_of_rare": int((misread & of_rare).sum()),
        "parts": parts,
        "fusers": fusers,
    }


def scores(
    bundle: Bundle, name: str, values: dict[str, Any], measured: MeasuredTracks, length: int
) -> TrackScores:
    fuser = make_fuser(name, bundle.posterior(), values)
    return track_scores(fuse_tracks(fuser, measured.tracks, measured.views), measured.tracks.label, length)


def show(record: dict[str, Any]) -> None:
    base = record["fusers"][BASELINE]
    print(
        f"{record['file']}: {record['misread']} of {record['tracks']} objects are misread "
        f"by {BASELINE} in most draws, {record['misread_of_rare']} of the {record['tracks_of_rare']} "
        "of rare classes"
    )
    for name, own in record["fusers"].items():
        line = f"  {name:10} NLL {own['nll']:.3f}, of which misread ones {own['nll_misread']:.3f}; accuracy "
        line += f"{own['accuracy']:.3f}; over {BASELINE} {own['nll'] / base['nll']:.3f}"
        if "nll_fitted_to_these" in own:
            line += f", fitted to these very tracks {own['nll_fitted_to_these'] / base['nll']:.3f}"
        for part, nll in own["nll_of_part"].items() if len(record["parts"]) > 1 else ():
            line += f", {part} {nll / base['nll_of_part'][part]:.3f}"
        print(line)


if __name__ == "__main__":
    main()
