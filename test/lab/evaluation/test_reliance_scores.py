"""Scores of sets and bounds, and the uncertainty wrapper beside them."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.lab.evaluation.reliance_scores import bound_records, coverage_records
from lla_fusion_ros.lab.evaluation.wrapper import bounds_of, grow, wrapped
from lla_fusion_ros.reliance.statements import calibrate
from lla_fusion_ros.types.track_views import TrackViews

OBJECTS, STEPS, CLASSES = 300, 12, 4


def drawn(seed: int):
    """Single pmfs of objects some of which are hard to see, and their fused pmfs: a product, tempered."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, CLASSES, OBJECTS)
    clear = rng.uniform(0.2, 3.0, OBJECTS)
    scores = rng.normal(size=(OBJECTS, STEPS, CLASSES)) + 0.7 * rng.normal(size=(OBJECTS, 1, CLASSES))
    scores[np.arange(OBJECTS), :, label] += clear[:, None]
    single = np.exp(scores)
    single /= single.sum(-1, keepdims=True)
    fused = np.exp(np.log(single).cumsum(axis=1) / np.sqrt(np.arange(1, STEPS + 1))[:, None])
    fused /= fused.sum(-1, keepdims=True)
    tracks = TrackViews.of_one_camera(
        np.zeros((OBJECTS, STEPS, 1, CLASSES)),
        np.zeros((OBJECTS, STEPS, 1, 2)),
        np.full(OBJECTS, STEPS),
        label,
    )
    return single, fused, tracks


def test_sets_and_bounds_hold_on_other_objects_and_are_tighter_than_the_wrapper() -> None:
    single, fused, tracks = drawn(0)
    reliance = calibrate(fused, tracks.real, tracks.label, tracks.regime, tracks.source)
    vote, features = wrapped(single)
    wrong = vote != tracks.label[:, None]
    tree = grow(features.reshape(-1, 6), wrong.ravel(), np.repeat(tracks.source, STEPS))
    single, fused, tracks = drawn(1)
    for record in coverage_records(reliance, fused, tracks):
        assert record["held"] > record["promised"] - 0.06 and 1 <= record["mean_size"] <= CLASSES
    ours, theirs = bound_records(reliance, fused, single, tracks, tree)
    for record in (ours, theirs):
        assert record["error"] < record["mean_bound"] < record["error"] + 0.15
    assert ours["mean_bound"] < theirs["mean_bound"] and ours["brier"] < theirs["brier"]
    assert len(bound_records(reliance, fused, single, tracks, None)) == 1


def test_the_wrapper_counts_votes_and_says_less_where_frames_agree() -> None:
    pmf = np.array([[[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]])
    vote, features = wrapped(pmf)
    assert vote.tolist() == [[0, 0, 0]]
    np.testing.assert_allclose(features[0, 2], [0.6, 2 / 3, 3, 2, 1.5, 2.3 / 3], rtol=1e-6)
    rng = np.random.default_rng(0)
    agreeing = rng.random(2000)
    tree = grow(agreeing[:, None], rng.random(2000) > agreeing, np.arange(2000))
    low, high = bounds_of(tree, np.array([[0.05], [0.95]]))
    assert high < 0.2 < 0.8 < low
