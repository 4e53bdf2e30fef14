"""The whole evaluation: network outputs, every fuser, warnings, and one document of results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.fusion import fusers, make_fuser
from lla_fusion_ros.fusion.along import views_of
from lla_fusion_ros.fusion.measure import MeasuredViews
from lla_fusion_ros.fusion.safety import least_lapse, safety_of
from lla_fusion_ros.lab.calibration.fusers import right_frames
from lla_fusion_ros.lab.datasets import REGIMES, Regime, TrackSet
from lla_fusion_ros.lab.evaluation.cached_views import network_outputs
from lla_fusion_ros.lab.evaluation.change_rates import change_rates
from lla_fusion_ros.lab.evaluation.fused import CHUNK, fuse_tracks
from lla_fusion_ros.lab.evaluation.reliance_scores import bound_records, coverage_records
from lla_fusion_ros.lab.evaluation.selection import Selection
from lla_fusion_ros.lab.evaluation.track_scores import (
    OPPONENT,
    Resamples,
    TrackScores,
    comparisons,
    interval,
    joined_scores,
    result_record,
    track_scores,
)
from lla_fusion_ros.lab.evaluation.warning_rates import warning_rates
from lla_fusion_ros.lab.evaluation.warning_scores import ood_record, switch_record, track_scores_after
from lla_fusion_ros.lab.evaluation.wrapper import Branch, Leaf, grow, wrapped
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.types.errors import InputError, unknown_name
from lla_fusion_ros.types.pmf import entropy
from lla_fusion_ros.types.settings import LENGTHS
from lla_fusion_ros.types.track_views import TrackViews, stacked

FUSED_ENTROPY = "fused entropy"  # the paper's score, of the default fuser's pmf

Key = tuple[str, str, int, int]  # fuser, regime, C, L


@dataclass(frozen=True, slots=True)
class Options:
    """What is scored.

    Attributes:
        draws: how often every track is degraded; the clean regime has nothing to draw.
        seed: of the first draw.
        resamples: of the bootstrap over tracks.
        precision: of the networks.
        safety: also try the fusers on contradictions, repetitions and for how sure they get.
        conditions: also count how often tracks are called unknown, or cannot be told, under conditions.
        background: a folder of images without known objects for that.
        reliance: also check the sets and bounds, beside an uncertainty wrapper.
        changes: also show glitches, abrupt and gradual changes under one id.
    """

    regimes: tuple[Regime, ...] = REGIMES
    lengths: tuple[int, ...] = LENGTHS
    networks: tuple[int, ...] = ()  # empty: one, and all
    fusers: tuple[str, ...] = ()  # empty: all
    draws: int = 5
    seed: int = 1
    resamples: int = 1000
    precision: str = "float32"
    safety: bool = False
    conditions: bool = False
    background: str | None = None
    reliance: bool = False
    changes: bool = False

    def seeds(self, regime: Regime) -> range:
        """One seed per draw of a regime."""
        return range(self.seed, self.seed + (1 if regime == "clean" else self.draws))


@dataclass(slots=True)
class Evaluation:
    """Records for JSON, and what the figures need beyond them: numbers per track, never per view."""

    results: list[dict[str, Any]] = field(default_factory=list)
    single_frame: list[dict[str, Any]] = field(default_factory=list)  # every frame alone, no fusion
    comparisons: list[dict[str, Any]] = field(default_factory=list)
    ood: list[dict[str, Any]] = field(default_factory=list)
    switch: list[dict[str, Any]] = field(default_factory=list)
    safety: list[dict[str, Any]] = field(default_factory=list)
    conditions: list[dict[str, Any]] = field(default_factory=list)
    sets: list[dict[str, Any]] = field(default_factory=list)
    bounds: list[dict[str, Any]] = field(default_factory=list)
    changes: list[dict[str, Any]] = field(default_factory=list)
    scores: dict[Key, TrackScores] = field(default_factory=dict)
    pmfs: dict[Key, np.ndarray] = field(default_factory=dict)  # of the default fuser and all networks only
    labels: dict[str, np.ndarray] = field(default_factory=dict)  # regime -> of every track and draw
    strangeness: dict[tuple[str, str, int], tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    # (score, regime, L) -> inside, outside


class Report(Protocol):
    """Hears of the progress."""

    def crops(self, count: int) -> None: ...
    def stage(self, name: str) -> None: ...


def evaluate(
    bundle: Bundle, selection: Selection, options: Options, cache: Path, report: Report
) -> Evaluation:
    """Score the bundle on the selection.

    In memory at a time: what the networks say of all draws of one regime, and everything that is made of
    it for CHUNK tracks; of the others only their scores.
    """
    run = _Run(bundle, selection, options, cache, report)
    for regime in options.regimes:
        run.score(regime)
    result = run.result
    for (name, under, count, length), own in result.scores.items():
        opponent = None if name == OPPONENT else result.scores.get((OPPONENT, under, count, length))
        record = result_record(own, opponent, run.draws)
        result.results.append({"fuser": name, "regime": under, "L": length, "C": count, **record})
    if options.conditions:
        classify = Classifier(bundle, precision=options.precision)
        watched = selection.inside, selection.outside, options.background, options.seed
        result.conditions = list(warning_rates(bundle, classify, *watched, report.stage))
    if options.changes:
        classify = Classifier(bundle, precision=options.precision)
        result.changes = change_rates(bundle, classify, selection.inside, options.seed, report.stage)
    report.stage("comparisons")
    result.comparisons = comparisons(result.scores, run.draws)
    return result


class _Run:
    """One evaluation; `score` adds a regime with all its draws to the result."""

    def __init__(
        self, bundle: Bundle, selection: Selection, options: Options, cache: Path, report: Report
    ) -> None:
        self.bundle, self.selection, self.options = bundle, selection, options
        self.cache, self.report = cache, report
        names = _chosen_fusers(options.fusers)
        self.panels = [_Panel(bundle, count, names) for count in _chosen_networks(bundle, options.networks)]
        self.draws = Resamples.draw(len(selection.inside.tracks), options.resamples)
        self.result = Evaluation()
        self._tree: Leaf | Branch | None = None

    def score(self, regime: Regime) -> None:
        inside = self._drawn(self.selection.inside, regime)
        outside = self._drawn(self.selection.outside, regime)
        assert inside is not None  # a selection always has known tracks
        self.result.labels[regime] = inside.label
        for panel in self.panels:
            self._score_panel(panel, inside, regime)
            if self.options.safety and panel.complete:
                self._score_safety(panel, inside, regime)
            if self.options.reliance and panel.complete:
                self._score_reliance(panel, inside, regime)
        self._score_warnings(inside, outside, regime)

    def _drawn(self, tracks: TrackSet, regime: Regime) -> TrackViews | None:
        """Every draw of a regime, one after the other, tracks in the same order; None without tracks."""
        if not tracks.tracks:
            return None
        seeds, longest = self.options.seeds(regime), max(self.options.lengths)
        crops, precision = self.report.crops, self.options.precision
        drawn = (
            network_outputs(self.bundle, tracks, regime, seed, longest, self.cache, crops, precision)
            for seed in seeds
        )
        return stacked(drawn, len(seeds))

    def _score_panel(self, panel: _Panel, tracks: TrackViews, regime: str) -> None:
        """Scores of every fuser and length, and of every frame alone."""
        right: list[np.ndarray] = []
        scores: dict[Key, list[TrackScores]] = {}
        pmfs: dict[Key, list[np.ndarray]] = {}
        networks = f"{panel.count} network{'s' * (panel.count > 1)}"
        for number, (chunk, views) in enumerate(panel.chunks(tracks)):
            self.report.stage(f"{regime}, {networks}, track {number * CHUNK + 1} of {len(tracks)}")
            right.append(right_frames(views.mean_pmf, chunk))
            for name, fuser in panel.fusers.items():
                fused = fuse_tracks(fuser, chunk, views, panel.rates)
                for length in self.options.lengths:
                    key = (name, regime, panel.count, length)
                    scores.setdefault(key, []).append(track_scores(fused, chunk.label, length))
                    if panel.complete and name == panel.default:
                        pmfs.setdefault(key, []).append(fused.after(length))
        self.result.scores |= {key: joined_scores(parts) for key, parts in scores.items()}
        self.result.pmfs |= {key: np.concatenate(parts) for key, parts in pmfs.items()}
        hits, frames = np.concatenate(right).astype(float), tracks.steps.astype(float)
        self.result.single_frame.append(
            {
                "regime": regime,
                "C": panel.count,
                "accuracy": float(hits.sum() / frames.sum()),
                "accuracy_interval": interval(self.draws.means(hits) / self.draws.means(frames)),
            }
        )

    def _score_safety(self, panel: _Panel, tracks: TrackViews, regime: str) -> None:
        """Of every fuser, on the views of CHUNK tracks picked evenly."""
        self.report.stage(f"{regime}, contradictions and repetitions")
        some = tracks.take(np.unique(np.linspace(0, len(tracks) - 1, CHUNK).astype(int)))
        views = views_of(panel.posterior, some)
        objects = self.bundle.meta.dataset.get("tracks", {}).get("validation", some.objects)
        for name, fuser in panel.fusers.items():
            found = replace(
                safety_of(fuser, some, views, self.options.seed), needed_doubt=least_lapse(objects)
            )
            self.result.safety.append({"fuser": name, "regime": regime, **found.as_dict()})

    def _score_reliance(self, panel: _Panel, tracks: TrackViews, regime: str) -> None:
        """Sets and bounds of the default fuser, which they are calibrated for."""
        reliance = self.bundle.reliance()
        if reliance is None:
            raise InputError(
                f"bundle '{self.bundle.source}' has no sets and bounds: `lla-fusion calibrate` adds them"
            )
        self.report.stage(f"{regime}, sets and bounds")
        fused, single = [], []
        for chunk, views in panel.chunks(tracks):
            fused.append(fuse_tracks(panel.default_fuser, chunk, views, panel.rates).pmf.astype(np.float32))
            single.append(views.mean_pmf.astype(np.float32).reshape(fused[-1].shape))
        pmf, alone = np.concatenate(fused), np.concatenate(single)
        sets = coverage_records(reliance, pmf, tracks)
        bounds = bound_records(reliance, pmf, alone, tracks, self._wrapper(panel))
        self.result.sets += [{"regime": regime, **record} for record in sets]
        self.result.bounds += [{"regime": regime, **record} for record in bounds]

    def _wrapper(self, panel: _Panel) -> Leaf | Branch | None:
        """An uncertainty wrapper of the same networks, calibrated on the same tracks; grown once."""
        validation = self.selection.validation
        if validation is None:
            return None
        if self._tree is None:
            parts = []
            for regime in REGIMES:  # as they were calibrated: other draws than those that are scored
                longest, precision = max(self.options.lengths), self.options.precision
                given = self.bundle, validation, regime, 0, longest, self.cache, None, precision
                tracks = network_outputs(*given)
                views = np.concatenate([v.mean_pmf for _, v in panel.chunks(tracks)])
                vote, features = wrapped(views.reshape(len(tracks), tracks.longest, -1))
                wrong = vote != tracks.label[:, None]
                source = np.repeat(tracks.source, tracks.steps)
                parts.append((features[tracks.real], wrong[tracks.real], source))
            features, wrong, source = (np.concatenate(column) for column in zip(*parts, strict=True))
            self._tree = grow(features, wrong, source)
        return self._tree

    def _score_warnings(self, inside: TrackViews, outside: TrackViews | None, regime: str) -> None:
        """The fitted warnings need all networks; the entropy of the fused pmf works with any number."""
        model, posterior = self.bundle.warning_model(), self.bundle.posterior()
        all_networks, lengths = self.bundle.networks, self.options.lengths
        self.report.stage(f"{regime}, warnings")
        if model is not None:
            record = switch_record(self.bundle, inside, self.options.seed)
            if record is not None:
                self.result.switch.append({"regime": regime, "C": all_networks, **record})
        if outside is None:
            return
        for panel in self.panels:
            known, strange = (_entropies(panel, part, lengths) for part in (inside, outside))
            for length in lengths:
                self._keep(FUSED_ENTROPY, regime, length, panel.count, (known[length], strange[length]))
        if model is None:
            return
        scored = [track_scores_after(model, posterior, part, lengths) for part in (inside, outside)]
        for length in lengths:
            for score in scored[0][length]:
                pair = scored[0][length][score], scored[1][length][score]
                self._keep(score, regime, length, all_networks, pair)

    def _keep(
        self, score: str, regime: str, length: int, count: int, pair: tuple[np.ndarray, np.ndarray]
    ) -> None:
        record = {"score": score, "regime": regime, "L": length, "C": count, **ood_record(*pair)}
        self.result.ood.append(record)
        if count == self.bundle.networks:
            self.result.strangeness[score, regime, length] = pair


class _Panel:
    """The first `count` networks of a bundle, and fusers with the numbers fitted for them."""

    def __init__(self, bundle: Bundle, count: int, names: Sequence[str]) -> None:
        posterior = bundle.posterior()
        self.count = count
        self.complete = count == bundle.networks
        self.posterior = posterior if self.complete else posterior.select(range(count))
        self.default = bundle.meta.default_fuser
        self.rates = bundle.change_rates()
        made = {
            name: make_fuser(name, self.posterior, fitted_values(bundle, name, count))
            for name in dict.fromkeys((*names, self.default))
        }
        self.default_fuser = made[self.default]
        self.fusers = {name: made[name] for name in names}

    def chunks(self, tracks: TrackViews) -> Iterator[tuple[TrackViews, MeasuredViews]]:
        """The tracks as these networks see them, CHUNK at a time, and all their views."""
        for chunk in tracks.chunks(CHUNK):
            seen = chunk if self.complete else chunk.select(range(self.count))
            yield seen, views_of(self.posterior, seen)


def fitted_values(bundle: Bundle, name: str, count: int) -> dict[str, Any]:
    """The fuser's numbers, fitted for all networks of the bundle; weights of absent ones are dropped."""
    values = dict(bundle.meta.fusers.get(name, {}))
    if "weights" in values:
        values["weights"] = list(values["weights"])[:count]
    return values


def _entropies(panel: _Panel, tracks: TrackViews, lengths: Sequence[int]) -> dict[int, np.ndarray]:
    """Of the default fuser's pmf after L frames.   L -> [tracks]"""
    found: dict[int, list[np.ndarray]] = {length: [] for length in lengths}
    for chunk, views in panel.chunks(tracks):
        fused = fuse_tracks(panel.default_fuser, chunk, views, panel.rates)
        for length in lengths:
            found[length].append(entropy(fused.after(length)))
    return {length: np.concatenate(parts) for length, parts in found.items()}


def _chosen_fusers(asked: Sequence[str]) -> list[str]:
    known = fusers()
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise InputError(unknown_name("fuser", unknown[0], known))
    return list(asked or known)


def _chosen_networks(bundle: Bundle, asked: Sequence[int]) -> list[int]:
    wrong = [count for count in asked if not 1 <= count <= bundle.networks]
    if wrong:
        raise InputError(
            f"--networks {wrong[0]}: the bundle has {bundle.networks}; ask for 1 to {bundle.networks}"
        )
    return sorted(set(asked or (1, bundle.networks)))
