"""Fitting weights on tracks whose views differ in quality."""

from __future__ import annotations

import numpy as np
import torch

from lla_fusion_ros.calibration.fusers import smoothed_loss
from lla_fusion_ros.errors import InputError
from lla_fusion_ros.fusion import fusers, make_fuser
from lla_fusion_ros.fusion.along import flat_views, pmf_along
from lla_fusion_ros.fusion.base import FitTracks
from lla_fusion_ros.fusion.fitting.objective import scored_pairs, smoothed_nll
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
    values = fusers()["reliability"].fit(posterior, FitTracks(*tracks))  # type: ignore[attr-defined]
    fresh = make_tracks(2, np.array([1.0, 1.0]), seed=1)
    plain = nll("reliability", posterior, None, fresh[0], fresh[1], fresh[3])
    fitted = nll("reliability", posterior, values, fresh[0], fresh[1], fresh[3])
    assert fitted < 0.8 * plain


def test_ella_learns_which_network_to_trust() -> None:
    posterior = make_posterior(2, CLASSES, FEATURES)
    tracks = make_tracks(2, np.array([0.5, 4.0]))
    values = fusers()["ella"].fit(posterior, FitTracks(*tracks))  # type: ignore[attr-defined]
    assert values["weights"][0] > 3 * values["weights"][1]
    fresh = make_tracks(2, np.array([0.5, 4.0]), seed=1)
    plain = nll("ella", posterior, None, fresh[0], fresh[1], fresh[3])
    assert nll("ella", posterior, values, fresh[0], fresh[1], fresh[3]) < plain


def test_a_fit_gives_the_same_values_twice() -> None:
    posterior = make_posterior(2, CLASSES, FEATURES)
    tracks = make_tracks(2, np.array([1.0, 1.0]))
    first, second = (fusers()["reliability"].fit(posterior, FitTracks(*tracks)) for _ in range(2))  # type: ignore[attr-defined]
    assert first == second


def test_padding_and_tracks_outside_the_classes_do_not_count() -> None:
    posterior = make_posterior(2, CLASSES, FEATURES)
    logits, features, steps, label = make_tracks(2, np.array([1.0, 1.0]))
    values = fusers()["reliability"].fit(posterior, FitTracks(logits, features, steps, label))  # type: ignore[attr-defined]
    wide = [np.pad(a, [(0, 0), (0, 5), (0, 0), (0, 0)]) for a in (logits, features)]
    extra = [np.concatenate([a, a[:7]]) for a in wide]
    again = fusers()["reliability"].fit(  # type: ignore[attr-defined]
        posterior,
        FitTracks(*extra, np.append(steps, np.zeros(7, int)), np.append(label, np.full(7, -1))),
    )
    np.testing.assert_allclose(again["theta"], values["theta"], rtol=1e-4, atol=1e-4)


def test_no_labelled_track_is_an_error_that_says_so() -> None:
    try:
        scored_pairs(FitTracks(np.zeros((1, 3, 1, 2)), np.zeros((1, 3, 1, 2)), np.array([3]), np.array([-1])))
    except InputError as error:
        assert "no validation track" in str(error)
    else:
        raise AssertionError("an unlabelled set was accepted")


def test_the_loss_of_gradient_fits_is_that_of_the_searches() -> None:
    tracks = FitTracks(*make_tracks(2, np.array([1.0, 1.0])))
    scored = scored_pairs(tracks)
    assert scored.wrong == 1 / (len(scored.label) + 2)
    scores = np.random.default_rng(0).normal(size=(len(scored.label), CLASSES))
    pmf = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    expected = smoothed_loss(pmf, scored.label.numpy(), scored.wrong)
    assert abs(float(smoothed_nll(torch.from_numpy(scores), scored)) - expected) < 1e-12


def test_a_fit_on_tracks_that_are_all_right_stays_as_unsure_as_their_number_allows() -> None:
    posterior = make_posterior(2, CLASSES, FEATURES)
    logits, features, steps, label = make_tracks(2, np.array([0.1, 0.1]))
    wrong = scored_pairs(FitTracks(logits, features, steps, label)).wrong
    for name in ("reliability", "reliable_pool"):
        values = fusers()[name].fit(posterior, FitTracks(logits, features, steps, label))  # type: ignore[attr-defined]
        fuser = make_fuser(name, posterior, values)
        views = flat_views(posterior, logits, features)
        last = pmf_along(fuser, views, STEPS)[:, -1]
        top = last.max(axis=1)
        assert (last.argmax(axis=1) == label).all()
        assert 0.1 * wrong < (1 - top).mean() < 10 * wrong
