"""The numbers of changes, from tracks whose views are as wrong as they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lla_fusion_ros.bundle.score_bundle import bundle_of, score_meta
from lla_fusion_ros.lab.calibration.changes import shown, with_changes
from lla_fusion_ros.types.track_views import TrackViews

NAMES = ("car", "truck", "bus", "tram")


def tracks(seed: int, count: int = 400, steps: int = 20) -> TrackViews:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, len(NAMES), count)
    p = rng.uniform(0.6, 0.99, (count, steps))
    said = np.where(
        rng.random((count, steps)) < p, label[:, None], rng.integers(0, len(NAMES), (count, steps))
    )
    pmf = np.repeat(((1 - p) / len(NAMES))[..., None], len(NAMES) + 1, axis=2)
    np.put_along_axis(pmf, said[..., None], p[..., None], axis=2)
    pmf[..., -1] = 1e-6  # something is there
    logits = np.log(pmf / pmf.sum(axis=2, keepdims=True))[:, :, None].astype(np.float32)
    features = np.zeros((count, steps, 1, 2), np.float32)
    features[..., 1] = 1
    return TrackViews.of_one_camera(logits, features, np.full(count, steps), label)


@pytest.fixture(scope="module")
def fitted():
    plain = bundle_of(score_meta(NAMES, {"name": "scores", "said": list(NAMES)}))
    return with_changes(plain, tracks(1))


def test_the_rate_of_looking_changed_holds_on_other_tracks(fitted) -> None:
    odds = shown(fitted.fuser(), tracks(2), fitted.change_rates(), len(fitted.reserved)).odds
    alarm = fitted.change_alarm()
    for rate in (0.2, 0.05):
        assert np.mean(odds.max(axis=1) >= alarm.threshold(rate)) == pytest.approx(rate, abs=0.7 * rate)
    assert not any("changed" in sentence for sentence in fitted.older)


def test_tracks_that_move_to_another_object_are_seen(fitted) -> None:
    first, second = tracks(3), tracks(4)
    moved = replace(first, logits=np.concatenate([first.logits[:, :10], second.logits[:, 10:]], axis=1))
    other = first.label != second.label
    found = shown(fitted.fuser(), moved, fitted.change_rates(), len(fitted.reserved))
    alarmed = found.odds[:, 10:].max(axis=1) >= fitted.change_alarm().threshold(0.01)
    assert alarmed[other].mean() > 0.9 and alarmed[~other].mean() < 0.05
    right = found.pmf[:, -1, : len(NAMES)].argmax(axis=1) == second.label
    assert right[other].mean() > 0.9
