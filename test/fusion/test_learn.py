"""Fitting weights on tracks whose views differ in quality."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from lla_fusion_ros.fusion import fusers, make_fuser
from lla_fusion_ros.fusion.along import flat_views, pmf_along
from lla_fusion_ros.fusion.learn import chance_of_an_error, scored_pairs, smoothed_nll
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_views import TrackViews
from support.tiny_posterior import make_posterior

TRACKS, STEPS, CLASSES, FEATURES = 120, 10, 4, 6


def make_tracks(networks: int, noise: np.ndarray, seed: int = 0):
    """Tracks whose views point to the class, with noise [networks] that differs.

    Half of the views are useless, which shows in their features: they are small.
    """
    rng = np.random.default_rng(seed)
    label = rng.integers(0, CLASSES, TRACKS)
    good = rng.random((TRACKS, STEPS, 1, 1)) < 0.5
    signal = 2.5 * np.eye(CLASSES)[label][:, None, None, :] * good
    logits = signal + noise[:, None] * rng.normal(size=(TRACKS, STEPS, networks, CLASSES))
    features = np.where(good, 2.0, 0.3) * rng.normal(size=(TRACKS, STEPS, networks, FEATURES))
    return logits, features, np.full(TRACKS, STEPS), label


def nll(name: str, posterior, values, logits, features, label) -> float:
    fuser = make_fuser(name, posterior, values)
    pmf = pmf_along(fuser, flat_views(posterior, logits, features), STEPS)
    return float(-np.log(pmf[np.arange(TRACKS), :, label] + 1e-12).mean())


def test_reliability_learns_which_views_to_trust() -> None:
    posterior = make_posterior(2, CLASSES, FEATURES)
    tracks = make_tracks(2, np.array([1.0, 1.0]))
    values = fusers()["reliability"].fit(posterior, TrackViews.of_one_camera(*tracks))
    fresh = make_tracks(2, np.array([1.0, 1.0]), seed=1)
    plain = nll("reliability", posterior, None, fresh[0], fresh[1], fresh[3])
    fitted = nll("reliability", posterior, values, fresh[0], fresh[1], fresh[3])
    assert fitted < 0.8 * plain


def test_ella_learns_which_network_to_trust() -> None:
    posterior = make_posterior(2, CLASSES, FEATURES)
    tracks = make_tracks(2, np.array([0.5, 4.0]))
    values = fusers()["ella"].fit(posterior, TrackViews.of_one_camera(*tracks))
    assert values["weights"][0] > 3 * values["weights"][1]
    fresh = make_tracks(2, np.array([0.5, 4.0]), seed=1)
    plain = nll("ella", posterior, None, fresh[0], fresh[1], fresh[3])
    assert nll("ella", posterior, values, fresh[0], fresh[1], fresh[3]) < plain


def test_a_fit_gives_the_same_values_twice() -> None:
    posterior = make_posterior(2, CLASSES, FEATURES)
    tracks = make_tracks(2, np.array([1.0, 1.0]))
    first, second = (
        fusers()["reliability"].fit(posterior, TrackViews.of_one_camera(*tracks)) for _ in range(2)
    )  # type: ignore[attr-defined]
    assert first == second


def test_padding_and_tracks_outside_the_classes_do_not_count() -> None:
    posterior = make_posterior(2, CLASSES, FEATURES)
    logits, features, steps, label = make_tracks(2, np.array([1.0, 1.0]))
    values = fusers()["reliability"].fit(posterior, TrackViews.of_one_camera(logits, features, steps, label))
    wide = [np.pad(a, [(0, 0), (0, 5), (0, 0), (0, 0)]) for a in (logits, features)]
    extra = [np.concatenate([a, a[:7]]) for a in wide]
    again = fusers()["reliability"].fit(
        posterior,
        TrackViews.of_one_camera(
            *extra, np.append(steps, np.zeros(7, int)), np.append(label, np.full(7, -1))
        ),
    )
    np.testing.assert_allclose(again["theta"], values["theta"], rtol=1e-4, atol=1e-4)


def test_no_labelled_track_is_an_error_that_says_so() -> None:
    empty = np.zeros((1, 3, 1, 2))
    with pytest.raises(InputError, match="no validation track"):
        scored_pairs(TrackViews.of_one_camera(empty, empty, np.array([3]), np.array([-1])))


def test_tracks_are_scored_at_every_length_they_reach() -> None:
    empty = np.zeros((3, 12, 1, 2))
    tracks = TrackViews.of_one_camera(empty, empty, np.array([4, 12, 12]), np.array([1, 0, -1]))
    track, step, label = scored_pairs(tracks)
    assert list(zip(track, step + 1, strict=True)) == [(0, 1), (0, 3), (1, 1), (1, 3), (1, 5), (1, 10)]
    np.testing.assert_array_equal(label, [1, 1, 0, 0, 0, 0])


def test_the_truth_leaves_the_other_classes_what_an_error_is_worth() -> None:
    pmf = np.array([[0.7, 0.2, 0.1], [0.25, 0.25, 0.5]])
    expected = [0.9 * np.log(0.7) + 0.05 * np.log(0.2 * 0.1), 0.9 * np.log(0.25) + 0.05 * np.log(0.25 * 0.5)]
    np.testing.assert_allclose(smoothed_nll(np.log(pmf), np.array([0, 1]), 0.1), -np.mean(expected))


@pytest.mark.parametrize("name", ["reliability", "evidence_pool"])
def test_the_formula_that_is_fitted_is_the_one_that_fuses(name) -> None:
    """Tensors through the same code give the same pmf, and a gradient for every learned value."""
    posterior = make_posterior(2, CLASSES, FEATURES)
    logits, features, steps, label = make_tracks(2, np.array([1.0, 1.0]))
    values = fusers()[name].fit(posterior, TrackViews.of_one_camera(logits, features, steps, label))
    fuser = make_fuser(name, posterior, values)
    inputs = fuser.inputs(flat_views(posterior, logits, features))  # type: ignore[attr-defined]
    fused = fuser.predict(fuser.sums(*inputs))  # type: ignore[attr-defined]
    fuser.value = {  # type: ignore[attr-defined]
        key: torch.tensor(value, dtype=torch.float64, requires_grad=True)
        for key, value in fuser.value.items()  # type: ignore[attr-defined]
    }
    tensors = fuser.predict(fuser.sums(*[torch.from_numpy(array) for array in inputs]))  # type: ignore[attr-defined]
    np.testing.assert_allclose(tensors.detach().numpy(), fused, rtol=1e-10)
    tensors.log()[:, 0].sum().backward()
    learned = set(fuser.scalars) | set(fuser.vectors)  # type: ignore[attr-defined]
    assert all(torch.isfinite(fuser.value[key].grad).all() for key in learned)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["pool", "evidence_pool"])
def test_no_number_is_fitted_to_a_bound(name) -> None:
    """Also where nothing tells of it, or where more is always better: what is near is always right here."""
    posterior = make_posterior(2, CLASSES, FEATURES)
    logits, features, steps, label = make_tracks(2, np.array([1.0, 1.0]))
    right = logits.mean(axis=2).argmax(axis=2) == label[:, None]
    size = np.where(right, 60.0, 8.0)
    tracks = replace(TrackViews.of_one_camera(logits, features, steps, label), size=size)
    kind = fusers()[name]
    values = kind.fit(posterior, tracks)
    for key, scalar in kind.scalars.items():
        assert scalar.low < values[key] < scalar.high, key
    assert values["size"] > 1
    assert values == kind.fit(posterior, tracks)


def test_a_fit_on_tracks_that_are_all_right_stays_as_unsure_as_their_number_allows() -> None:
    posterior = make_posterior(2, CLASSES, FEATURES)
    logits, features, steps, label = make_tracks(2, np.array([0.1, 0.1]))
    tracks = TrackViews.of_one_camera(logits, features, steps, label)
    wrong = chance_of_an_error(len(scored_pairs(tracks)[0]))
    fuser = make_fuser("reliability", posterior, fusers()["reliability"].fit(posterior, tracks))
    last = pmf_along(fuser, flat_views(posterior, logits, features), STEPS)[:, -1]
    assert (last.argmax(axis=1) == label).all()
    assert 0.1 * wrong < (1 - last.max(axis=1)).mean() < 10 * wrong
