"""The whole evaluation: network outputs, every fuser, warnings, and one document of results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.calibration.scores import right_frames
from lla_fusion_ros.datasets import REGIMES, Regime, TrackSet
from lla_fusion_ros.errors import InputError
from lla_fusion_ros.evaluation.bootstrap import Resamples, interval
from lla_fusion_ros.evaluation.compare import comparisons
from lla_fusion_ros.evaluation.fused import Fused, fuse_tracks
from lla_fusion_ros.evaluation.ood import ood_record, track_scores_after
from lla_fusion_ros.evaluation.outputs import network_outputs
from lla_fusion_ros.evaluation.scores import OPPONENT, TrackScores, result_record, track_scores
from lla_fusion_ros.evaluation.selection import Selection
from lla_fusion_ros.evaluation.switch import switch_record
from lla_fusion_ros.fusion import fusers, make_fuser
from lla_fusion_ros.fusion.along import flat_views
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.pmf import entropy
from lla_fusion_ros.track_views import LENGTHS, TrackViews, joined

FUSED_ENTROPY = "fused entropy"  # the paper's score, of the default fuser's pmf

Key = tuple[str, str, int, int]  # fuser, regime, C, L


@dataclass(frozen=True, slots=True)
class Options:
    """What is scored.

    Attributes:
        draws: how often every track is degraded anew; the clean regime has nothing to draw.
        seed: of the first draw.
        resamples: of the bootstrap over tracks.
        precision: of the networks.
    """

    regimes: tuple[Regime, ...] = REGIMES
    lengths: tuple[int, ...] = LENGTHS
    networks: tuple[int, ...] = ()  # empty: one, and all
    fusers: tuple[str, ...] = ()  # empty: all
    draws: int = 5
    seed: int = 1
    resamples: int = 1000
    precision: str = "float32"

    def seeds(self, regime: Regime) -> range:
        """One seed per draw of a regime."""
        return range(self.seed, self.seed + (1 if regime == "clean" else self.draws))


@dataclass(slots=True)
class Evaluation:
    """Records for JSON, and what the figures need beyond them."""

    results: list[dict[str, Any]] = field(default_factory=list)
    single_frame: list[dict[str, Any]] = field(default_factory=list)  # every frame alone, no fusion
    comparisons: list[dict[str, Any]] = field(default_factory=list)
    ood: list[dict[str, Any]] = field(default_factory=list)
    switch: list[dict[str, Any]] = field(default_factory=list)
    pmfs: dict[Key, np.ndarray] = field(default_factory=dict)
    labels: dict[str, np.ndarray] = field(default_factory=dict)  # regime -> of every pmf's row
    strangeness: dict[tuple[str, str, int], tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    # (score, regime, L) -> inside, outside
    along: dict[tuple[str, str], Fused] = field(default_factory=dict)
    # (fuser, regime) -> prediction after every frame, all networks; of `last` and the default only


class Report(Protocol):
    """Hears of the progress."""

    def crops(self, count: int) -> None: ...
    def stage(self, name: str) -> None: ...


def evaluate(
    bundle: Bundle, selection: Selection, options: Options, cache: Path, report: Report
) -> Evaluation:
    """Score the bundle on the selection (METHOD 8)."""
    names = _chosen_fusers(options.fusers)
    counts = _chosen_networks(bundle, options.networks)
    longest = max(options.lengths)
    evaluation = Evaluation()
    scores: dict[Key, TrackScores] = {}
    draws = Resamples.draw(len(selection.inside.tracks), options.resamples)
    for regime in options.regimes:
        inside, outside = (
            _drawn(bundle, part, regime, options, longest, cache, report)
            for part in (selection.inside, selection.outside)
        )
        assert inside is not None  # a selection always has known tracks
        evaluation.labels[regime] = inside.label
        for count in counts:
            seen = _seen_by(bundle, inside, count)
            evaluation.single_frame.append({"regime": regime, "C": count, **_single_frame(*seen, draws)})
            for name, fused in _fuse_all(bundle, *seen, names, report, regime):
                if count == bundle.networks and name in ("last", bundle.meta.default_fuser):
                    evaluation.along[name, regime] = fused
                for length in options.lengths:
                    key = (name, regime, count, length)
                    scores[key] = track_scores(fused, inside.label, length)
                    evaluation.pmfs[key] = fused.after(length)
        _ood(bundle, inside, outside, regime, counts, options, evaluation, report)
    for (name, of_regime, count, length), own in scores.items():
        opponent = None if name == OPPONENT else scores.get((OPPONENT, of_regime, count, length))
        record = result_record(
            own,
            evaluation.pmfs[name, of_regime, count, length],
            evaluation.labels[of_regime],
            opponent,
            draws,
        )
        evaluation.results.append({"fuser": name, "regime": of_regime, "L": length, "C": count, **record})
    report.stage("comparisons")
    evaluation.comparisons = comparisons(scores, draws)
    return evaluation


def _drawn(
    bundle: Bundle,
    tracks: TrackSet,
    regime: Regime,
    options: Options,
    longest: int,
    cache: Path,
    report: Report,
) -> TrackViews | None:
    """Every draw of a regime, one after the other, tracks in the same order; None without tracks."""
    if not tracks.tracks:
        return None
    return joined(
        [
            network_outputs(bundle, tracks, regime, seed, longest, cache, report.crops, options.precision)
            for seed in options.seeds(regime)
        ]
    )


def _fuse_all(
    bundle: Bundle,
    tracks: TrackViews,
    views: MeasuredViews,
    names: Sequence[str],
    report: Report,
    regime: str,
) -> list[tuple[str, Fused]]:
    count = tracks.networks
    fused = []
    for name in names:
        report.stage(f"{regime}, {count} network{'s' * (count > 1)}, {name}")
        fuser = make_fuser(name, views.posterior, fitted_values(bundle, name, count))
        fused.append((name, fuse_tracks(fuser, tracks, views)))
    return fused


def _seen_by(bundle: Bundle, tracks: TrackViews, count: int) -> tuple[TrackViews, MeasuredViews]:
    """The tracks as the first `count` networks see them, and all their views."""
    posterior = bundle.posterior()
    if count < bundle.networks:
        posterior, tracks = posterior.select(range(count)), tracks.select(range(count))
    return tracks, flat_views(posterior, tracks.logits, tracks.features)


def _single_frame(tracks: TrackViews, views: MeasuredViews, draws: Resamples) -> dict[str, Any]:
    """The accuracy of the networks on every frame alone, with its interval over tracks."""
    right = right_frames(views.mean_pmf, tracks).astype(float)
    return {
        "accuracy": float(right.sum() / tracks.steps.sum()),
        "accuracy_interval": interval(draws.means(right) / draws.means(tracks.steps.astype(float))),
    }


def fitted_values(bundle: Bundle, name: str, count: int) -> dict[str, Any]:
    """The fuser's numbers, fitted for all networks of the bundle; weights of absent ones are dropped."""
    values = dict(bundle.meta.fusers.get(name, {}))
    if "weights" in values:
        values["weights"] = list(values["weights"])[:count]
    return values


def _ood(
    bundle: Bundle,
    inside: TrackViews,
    outside: TrackViews | None,
    regime: str,
    counts: Sequence[int],
    options: Options,
    evaluation: Evaluation,
    report: Report,
) -> None:
    """Warnings: the fitted ones need all networks; the entropy of the fused pmf works with any number."""
    model, posterior = bundle.warning_model(), bundle.posterior()
    report.stage(f"{regime}, warnings")
    if model is not None:
        record = switch_record(model, posterior, inside, options.seed)
        if record is not None:
            evaluation.switch.append({"regime": regime, "C": bundle.networks, **record})
    if outside is None:
        return
    for count in counts:
        (_, known), (_, strange) = (
            _fuse_all(bundle, *_seen_by(bundle, part, count), [bundle.meta.default_fuser], report, regime)[0]
            for part in (inside, outside)
        )
        for length in options.lengths:
            pair = entropy(known.after(length)), entropy(strange.after(length))
            _keep(evaluation, FUSED_ENTROPY, regime, length, count, bundle.networks, pair)
    if model is None:
        return
    known_scores = track_scores_after(model, posterior, inside, options.lengths)
    strange_scores = track_scores_after(model, posterior, outside, options.lengths)
    for length in options.lengths:
        for score, values in known_scores[length].items():
            pair = values, strange_scores[length][score]
            _keep(evaluation, score, regime, length, bundle.networks, bundle.networks, pair)


def _keep(
    evaluation: Evaluation,
    score: str,
    regime: str,
    length: int,
    count: int,
    all_networks: int,
    pair: tuple[np.ndarray, np.ndarray],
) -> None:
    evaluation.ood.append({"score": score, "regime": regime, "L": length, "C": count, **ood_record(*pair)})
    if count == all_networks:
        evaluation.strangeness[score, regime, length] = pair


def _chosen_fusers(asked: Sequence[str]) -> list[str]:
    known = fusers()
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise InputError(f"there is no fuser '{unknown[0]}'; choose from {', '.join(known)}")
    return list(asked or known)


def _chosen_networks(bundle: Bundle, asked: Sequence[int]) -> list[int]:
    wrong = [count for count in asked if not 1 <= count <= bundle.networks]
    if wrong:
        raise InputError(
            f"--networks {wrong[0]}: the bundle has {bundle.networks}; ask for 1 to {bundle.networks}"
        )
    return sorted(set(asked or (1, bundle.networks)))
