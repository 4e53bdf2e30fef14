#!/usr/bin/env python3
"""Which part of a fuser gains what: variants fitted on a bundle's validation tracks, scored on test tracks.

Every scalar is fitted on validation tracks only (two fresh draws of the degradations); the table gives the
NLL over the freely fitted `pool`'s, pooled over all regimes and L >= 10, with 95% intervals over tracks.

Example:
    python tools/research_fusers.py gtsrb35.safetensors --root data/GTSRB --json docs/results/research.json
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lla_fusion_ros.bundle import Bundle, load_bundle
from lla_fusion_ros.calibration import TrackViews, joined
from lla_fusion_ros.calibration.fusers import fit_fuser, measure_tracks
from lla_fusion_ros.datasets import REGIMES, load_dataset, recorded_split
from lla_fusion_ros.evaluation.bootstrap import Resamples
from lla_fusion_ros.evaluation.fused import fuse_tracks
from lla_fusion_ros.evaluation.outputs import default_cache, network_outputs
from lla_fusion_ros.evaluation.scores import TrackScores, nll_ratio, track_scores
from lla_fusion_ros.fusion import make_fuser
from lla_fusion_ros.fusion.along import flat_views
from lla_fusion_ros.fusion.base import FitTracks
from lla_fusion_ros.fusion.fitting.reliable_pool import SIGN_PRIOR, fit_reliable_pool
from lla_fusion_ros.fusion.quality import QUALITY

LENGTHS = (10, 20, 30)
VALIDATION_SEEDS, TEST_SEED = (21, 22), 31
PLAIN = tuple(name for name in QUALITY if name != "log_variance")

Variant = tuple[str, str, dict[str, Any]]  # title, fuser, values


def variants(bundle: Bundle, validation: TrackViews) -> Iterator[Variant]:
    """Fit one variant after the other; `pool` comes first."""
    posterior = bundle.posterior()
    measured = measure_tracks(posterior, validation)
    yield "`pool`", "pool", dict(fit_fuser("pool", posterior, measured))
    tracks = FitTracks(validation.logits, validation.features, validation.steps, validation.label)

    def learned(**options: Any) -> dict[str, Any]:
        return dict(fit_reliable_pool(posterior, tracks, **options))

    own = posterior.prior_precision
    yield "`reliable_pool`", "reliable_pool", learned()
    yield (
        "`reliable_pool` without the Laplace variance among its signs",
        "reliable_pool",
        learned(signs=PLAIN),
    )
    yield (
        "`reliable_pool` with entropy and the Laplace variance only",
        "reliable_pool",
        learned(signs=("entropy", "log_variance")),
    )
    yield (
        f"`reliable_pool`, variance under the posterior's prior ({own:g})",
        "reliable_pool",
        learned(prior=own),
    )
    for name in ("reliability", "dual_pool"):
        yield f"`{name}`", name, dict(fit_fuser(name, posterior, measured))


def scored(
    bundle: Bundle, variant: Variant, test: dict[str, TrackViews]
) -> dict[tuple[str, int], TrackScores]:
    """(regime, L) -> scores of every test track."""
    posterior = bundle.posterior()
    scores: dict[tuple[str, int], TrackScores] = {}
    for regime, tracks in test.items():
        views = flat_views(posterior, tracks.logits, tracks.features)
        fused = fuse_tracks(make_fuser(variant[1], posterior, variant[2]), tracks, views)
        scores |= {(regime, length): track_scores(fused, tracks.label, length) for length in LENGTHS}
    return scores


def study(bundle: Bundle, args: argparse.Namespace) -> None:
    """Write the table after every variant, so that a long study can be read before it ends."""
    made = bundle.meta.dataset
    tracks = load_dataset(args.dataset, args.root)
    if tracks.digest != made["digest"]:
        raise SystemExit("the bundle was trained on other data: its validation split is not known here")
    splits = recorded_split(tracks, made)

    def outputs(part: Any, regime: Any, seed: int) -> TrackViews:
        return network_outputs(bundle, part, regime, seed, max(LENGTHS), default_cache())

    fitted_on = joined([outputs(splits.validation, r, seed) for r in REGIMES for seed in VALIDATION_SEEDS])
    test: dict[str, TrackViews] = {regime: outputs(splits.test, regime, TEST_SEED) for regime in REGIMES}
    draws = Resamples.draw(len(splits.test.tracks))
    note = (
        f"{Path(bundle.source).stem}: {bundle.networks} networks, {len(splits.validation.tracks)} validation "
        f"tracks under {len(VALIDATION_SEEDS)} draws of each regime, {len(splits.test.tracks)} test tracks; "
        f"the variance among the signs is taken under the prior {SIGN_PRIOR:g}."
    )
    rows: list[list[Any]] = []
    opponent: list[TrackScores] = []
    for variant in variants(bundle, fitted_on):
        scores = scored(bundle, variant, test)
        opponent = opponent or list(scores.values())
        ratio, (low, high) = nll_ratio(list(scores.values()), opponent, draws)
        hard = scores["hard", LENGTHS[0]]
        accuracy, nll = hard.correct.mean(), hard.nll.mean()
        rows.append([variant[0], f"{ratio:.3f} [{low:.3f}, {high:.3f}]", f"{accuracy:.3f} / {nll:.3f}"])
        print(*rows[-1], sep="   ", file=sys.stderr, flush=True)
        table = {"header": ["fuser", "NLL / pool, L ≥ 10", "hard L=10"], "rows": rows, "note": note}
        write_table(args.json, "ideas", table)


def write_table(file: Path, key: str, table: dict[str, Any]) -> None:
    document = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    document[key] = {**table, "command": shlex.join(["python", *sys.argv])}
    file.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def arguments(about: str | None) -> argparse.Namespace:
    """A bundle, its data and a file for the results."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("--dataset", default="gtsrb")
    parser.add_argument("--root")
    parser.add_argument("--json", type=Path, required=True, help="results; other tables in the file are kept")
    return parser.parse_args()


def main() -> int:
    args = arguments(__doc__)
    study(load_bundle(args.bundle), args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
