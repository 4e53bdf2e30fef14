"""A detector's scores through the engine, at 10 Hz: what changes is followed, what flickers and what is not
there is not believed."""

from __future__ import annotations

import numpy as np
import pytest

from lla_fusion_ros.bundle.score_bundle import score_bundle
from lla_fusion_ros.engine.engine import FrameResult, FusionEngine, Observation
from lla_fusion_ros.stream.scores import ScoreReader
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.views import Views
from lla_fusion_ros.warnings.result import IDENTITY_SWITCH, REASONS

NAMES = tuple("abcdefgh")
CLASSES, TRACKS = len(NAMES), 200
CHANGING, OTHERS = {"changing_classes": "all"}, {}


def fused(said: np.ndarray, scores: np.ndarray, settings: dict) -> list[FrameResult]:
    """2 x [tracks, frames]"""
    bundle = score_bundle(NAMES)
    reader, engine = ScoreReader(bundle), FusionEngine(bundle, FusionSettings(**settings))
    features = np.tile(np.array([0, 1], np.float32), (len(said), 1, 1))
    ids, results = [str(track) for track in range(len(said))], []
    for frame in range(said.shape[1]):
        pmf = [
            reader.pmf({number: score})
            for number, score in zip(said[:, frame].tolist(), scores[:, frame], strict=True)
        ]
        views = Views(np.log(pmf)[:, None].astype(np.float32), features)
        results.append(engine.update(Observation("front", 10**12 + frame * 10**8, ids, views)))
    return results


def published(said: np.ndarray, scores: np.ndarray, settings: dict) -> np.ndarray:
    """2 x [tracks, frames] -> [tracks, frames, classes and nothing]"""
    return np.stack([result.pmf for result in fused(said, scores, settings)], axis=1)


def scores_of(said: np.ndarray, low: float = 0.35, high: float = 0.97) -> np.ndarray:
    return np.random.default_rng(1).uniform(low, high, said.shape)


def another(rng: np.random.Generator, first: np.ndarray) -> np.ndarray:
    return (first + rng.integers(1, CLASSES, first.shape)) % CLASSES


@pytest.mark.parametrize(("settings", "lag", "stale"), [(CHANGING, 1, 0.0), (OTHERS, 2, 1.0)])
def test_a_change_is_followed(settings, lag, stale):
    rng, before = np.random.default_rng(2), 40
    old = rng.integers(0, CLASSES, (TRACKS, 1))
    new = another(rng, old)
    said = np.hstack([np.repeat(old, before, axis=1), np.repeat(new, 10, axis=1)])
    after = published(said, scores_of(said), settings)[:, before:]
    leads = after[..., :CLASSES].argmax(axis=2) == new
    assert np.mean(leads[:, : lag + 1].any(axis=1)) >= 0.95
    surely_old = np.take_along_axis(after, old[..., None], axis=2) >= 0.9
    assert surely_old.sum(axis=(1, 2)).mean() <= stale


@pytest.mark.parametrize(("settings", "most"), [(CHANGING, 13), (OTHERS, 4)])
def test_a_class_that_flips_in_a_fifth_of_the_frames_is_steadied(settings, most):
    rng = np.random.default_rng(3)
    true = np.repeat(rng.integers(0, CLASSES, (TRACKS, 1)), 80, axis=1)
    said = np.where(rng.random(true.shape) < 0.2, another(rng, true[:, :1]), true)  # for one other class
    shown = published(said, scores_of(said), settings)[..., :CLASSES].argmax(axis=2)
    flips = [(np.diff(each, axis=1) != 0).sum(axis=1).mean() for each in (said, shown)]
    assert flips[0] > 24 and flips[1] <= most
    assert np.mean(shown != true) < np.mean(said != true) / 2


@pytest.mark.parametrize("settings", [CHANGING, OTHERS])
@pytest.mark.parametrize("same", [True, False])
def test_low_scores_over_an_empty_road_are_never_a_class(settings, same):
    rng = np.random.default_rng(4)
    said = rng.integers(0, CLASSES, (TRACKS, 60))
    said = np.repeat(said[:, :1], 60, axis=1) if same else said
    after = published(said, scores_of(said, 0.1, 0.4), settings)[:, 5:]
    assert after[..., :CLASSES].max() < 0.5
    np.testing.assert_allclose(after.sum(axis=2), 1)


def test_flicker_is_rarely_called_an_identity_switch_and_a_real_one_is():
    rng, before = np.random.default_rng(5), 20
    first = np.repeat(rng.integers(0, CLASSES, (TRACKS, 1)), 30, axis=1)
    wrong = rng.random(first.shape) < 0.1
    second = first.copy()
    second[:, before:] = another(rng, first[:, :1])
    switch, warned = REASONS.index(IDENTITY_SWITCH), []
    for true in (first, second):
        said = np.where(wrong, another(rng, first[:, :1]), true)
        results = fused(said, scores_of(said), OTHERS)
        raised = np.stack([result.verdicts.raised[:, switch] for result in results], axis=1)
        warned.append(
            [raised[:, :before].any(axis=1).mean(), raised[:, before : before + 5].any(axis=1).mean()]
        )
    assert max(warned[0]) <= 0.02 and warned[1][1] >= 0.9
