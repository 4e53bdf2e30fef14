#!/usr/bin/env python3
"""Do the values of a fuser transfer? Those fitted for one bundle, applied to another's networks and data.

The table gives the NLL on the test tracks of the bundle it is applied to, over that of the `pool` fitted
there, pooled over all regimes and L >= 10 (shorter tracks count with all they have). Reporting only: nothing
is fitted here.

Example:
    python tools/research_transfer.py gtsrb=gtsrb.safetensors,gtsrb,data/GTSRB \\
        signworld=models/signworld.safetensors,signworld --json docs/results/research.json
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from research_fusers import write_table

from lla_fusion_ros.bundle import Bundle, load_bundle
from lla_fusion_ros.calibration import TrackViews
from lla_fusion_ros.datasets import REGIMES, load_dataset
from lla_fusion_ros.evaluation.bootstrap import Resamples
from lla_fusion_ros.evaluation.fused import fuse_tracks
from lla_fusion_ros.evaluation.outputs import default_cache, network_outputs
from lla_fusion_ros.evaluation.scores import TrackScores, nll_ratio, track_scores
from lla_fusion_ros.evaluation.selection import select_tracks
from lla_fusion_ros.fusion import make_fuser
from lla_fusion_ros.fusion.along import flat_views

FUSERS = ("pool", "reliability", "reliable_pool", "dual_pool")
LENGTHS = (10, 20, 30)
SEED = 1  # that of `lla-fusion evaluate`, whose network outputs are then found in the cache


@dataclass(frozen=True, slots=True)
class Place:
    """A bundle and what its networks say of its test tracks, by regime."""

    name: str
    bundle: Bundle
    tracks: dict[str, TrackViews]

    @classmethod
    def read(cls, text: str) -> Place:
        name, _, rest = text.partition("=")
        file, dataset, *root = rest.split(",")
        bundle = load_bundle(file)
        inside = select_tracks(bundle, load_dataset(dataset, root[0] if root else None), "test").inside
        outputs: dict[str, TrackViews] = {
            regime: network_outputs(bundle, inside, regime, SEED, max(LENGTHS), default_cache())
            for regime in REGIMES
        }
        return cls(name, bundle, outputs)

    def scores(self, fuser: str, source: Bundle) -> list[TrackScores]:
        """Every regime and length, with the values that were fitted for another bundle."""
        posterior, scores = self.bundle.posterior(), []
        for tracks in self.tracks.values():
            views = flat_views(posterior, tracks.logits, tracks.features)
            fused = fuse_tracks(make_fuser(fuser, posterior, source.meta.fusers[fuser]), tracks, views)
            scores += [track_scores(fused, tracks.label, length) for length in LENGTHS]
        return scores


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("place", nargs="+", metavar="NAME=BUNDLE,DATASET[,ROOT]")
    parser.add_argument("--json", type=Path, required=True, help="results; other tables in the file are kept")
    args = parser.parse_args()
    places = [Place.read(text) for text in args.place]
    rows = []
    for fuser in FUSERS:
        for source in places:
            row = [f"`{fuser}`", source.name]
            for target in places:
                draws = Resamples.draw(len(target.tracks[REGIMES[0]]))
                opponent = target.scores("pool", target.bundle)
                ratio, (low, high) = nll_ratio(target.scores(fuser, source.bundle), opponent, draws)
                own = " (own)" if source is target else ""
                row.append(f"{ratio:.3f} [{low:.3f}, {high:.3f}]{own}")
            rows.append(row)
            print(*row, sep="   ", file=sys.stderr, flush=True)
    header = ["fuser", "values fitted on", *(f"applied to {place.name}" for place in places)]
    note = "NLL over that of the `pool` fitted for the same bundle; test tracks, all regimes, L ≥ 10."
    write_table(args.json, "transfer", {"header": header, "rows": rows, "note": note})
    return 0


if __name__ == "__main__":
    sys.exit(main())
