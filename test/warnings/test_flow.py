"""Views of many tracks through the warnings: what is found, and when tracks are asked about."""

from __future__ import annotations

import numpy as np
import pytest

from lla_fusion_ros.warnings.fit import fit_warnings
from lla_fusion_ros.warnings.flow import TrackWarnings, due_for_scores
from lla_fusion_ros.warnings.model import WarningModel
from support.feature_world import FeatureWorld
from support.warned_tracks import scores_along, scores_of_frame


@pytest.fixture(scope="module")
def world() -> FeatureWorld:
    return FeatureWorld()


@pytest.fixture(scope="module")
def model(world) -> WarningModel:
    return fit_warnings(world.posterior, world.known(150), world.strange(80))


def test_strangers_score_higher_than_known_objects(world, model) -> None:
    known = scores_along(world, model, world.known(60))[-1].ood_score
    strange = scores_along(world, model, world.strange(60))[-1].ood_score
    assert np.mean(strange[:, None] > known[None, :]) > 0.95
    assert model.quality["auroc_combined"] > 0.95


def test_a_switch_is_found_within_five_views(world, model) -> None:
    first, second = world.known(100), world.known(100)
    other = first.label != second.label
    warnings = TrackWarnings(model, world.posterior, 100)
    lowest = np.ones(100)
    for step, tracks in enumerate([first] * 8 + [second] * 5):
        scores = scores_of_frame(warnings, world, tracks, step % 12, count=step + 1)
        if step >= 8:
            lowest = np.minimum(lowest, scores.p_values[:, 1])
    assert np.mean(lowest[other] <= 0.01) > 0.9
    assert np.mean(lowest[~other] <= 0.01) < 0.2


def test_cameras_that_see_different_classes_are_found(world, model) -> None:
    first, second = world.known(100), world.known(100)
    other = first.label != second.label
    warnings = TrackWarnings(model, world.posterior, 100)
    for step in range(6):
        for camera, tracks in enumerate((first, second)):
            scores = scores_of_frame(warnings, world, tracks, step, camera, count=2 * step + camera + 1)
    agree = scores.p_values[:, 2]
    assert np.mean(agree[other] <= 0.01) > 0.9
    assert np.mean(agree[~other] <= 0.01) < 0.1


def _asks(views, asked, frames):
    """Let every track be seen in each frame; in which frames each is asked about, by number of its view."""
    views, asked = np.array(views), np.array(asked)
    found = [[] for _ in views]
    for _ in range(frames):
        views += 1
        about = np.flatnonzero(due_for_scores(views, asked))
        asked[about] = views[about]
        for track in about:
            found[track].append(int(views[track]))
    return found


def test_a_track_alone_is_asked_about_ever_more_rarely_but_never_forgotten():
    (asked,) = _asks([0], [0], 20_000)
    assert asked[:12] == [1, 2, 3, 4, 5, 10, 15, 20, 25, 30, 35, 40]
    gaps = np.diff(asked)
    assert gaps.max() == 30 and (gaps[5:10] == 5).all() and (gaps[-100:] == 30).all()


def test_tracks_of_one_frame_fall_into_step():
    together = _asks([0, 6, 13, 27], [0, 5, 11, 24], 200)
    begun = np.array([0, 6, 13, 27])
    frames = [set((np.array(views) - first).tolist()) for views, first in zip(together, begun, strict=True)]
    last = [{frame for frame in each if frame > 150} for each in frames]
    assert len(set.union(*last)) <= 4  # about one frame in 25 asks, for all of them
    for views in together:
        waited, later = np.diff(views), np.array(views[1:])
        assert (waited <= np.where(later <= 5, 1, 5 * np.clip(later // 30, 1, 6))).all()


def test_a_frame_of_nobody_asks_nobody():
    assert len(due_for_scores(np.zeros(0, int), np.zeros(0, int))) == 0
