"""Any finite input gives a finite pmf; anything else is refused by name and changes nothing."""

from __future__ import annotations

import copy
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lla_fusion_ros.fusion import fusers, make_fuser
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.views import Views
from support.tiny_posterior import make_posterior, make_views

NAMES = sorted(fusers())
finite = st.floats(allow_nan=False, allow_infinity=False)


def check_pmf(pmf: np.ndarray) -> None:
    assert np.isfinite(pmf).all()
    assert (pmf >= 0).all()
    np.testing.assert_allclose(pmf.sum(axis=-1), 1.0, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12, deadline=None)
@given(
    logits=arrays(np.float64, (3, 2, 3), elements=finite),
    features=arrays(np.float64, (3, 2, 4), elements=finite),
)
def test_any_finite_view_gives_a_finite_pmf_that_sums_to_one(name, logits, features) -> None:
    fuser = make_fuser(name, make_posterior(networks=2, classes=3, features=4), window=2)
    state = fuser.initial(1)
    for step in range(3):
        state = fuser.update(state, Views(logits[step : step + 1], features[step : step + 1]))
        check_pmf(fuser.predict(state))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("logit", [0.0, 1e4, -1e30, 3.4e38, 1.7e308])
def test_extreme_logits_and_features_stay_finite(name, logit) -> None:
    posterior = make_posterior(networks=2, classes=3, features=4)
    fuser = make_fuser(name, posterior, window=2)
    logits = np.zeros((1, 2, 3))
    logits[0, 0, 1], logits[0, 1, 2] = logit, -logit
    state = fuser.initial(1)
    for scale in (0.0, 1e-300, 1e-157, logit):
        state = fuser.update(state, Views(logits, np.full((1, 2, 4), scale)))
        check_pmf(fuser.predict(state))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("classes", [2, 43, 1000])
def test_any_number_of_classes_works(name, classes) -> None:
    posterior = make_posterior(networks=1, classes=classes, features=3)
    fuser = make_fuser(name, posterior, window=2)
    state = fuser.update(fuser.initial(2), make_views(posterior, 2))
    check_pmf(fuser.predict(state))


@pytest.mark.parametrize("name", NAMES)
def test_single_and_double_precision_views_agree(name) -> None:
    posterior = make_posterior()
    fuser = make_fuser(name, posterior)
    views = make_views(posterior, 3)
    small = Views(views.logits.astype(np.float32), views.features.astype(np.float32))
    results = [fuser.predict(fuser.update(fuser.initial(3), part)) for part in (views, small)]
    np.testing.assert_allclose(results[0], results[1], atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=5, deadline=None)
@given(noise=st.sampled_from([0.0, 1e-300, 1e-15, 1e-10, 1e-6]), seed=st.integers(0, 1000))
def test_views_that_are_copies_or_almost_copies_of_each_other_stay_finite(name, noise, seed) -> None:
    """R of such views is singular or has a condition of up to 1e20; a parked vehicle sees little else."""
    posterior = make_posterior(networks=2, classes=3, features=4, cross=seed % 2 == 1)
    fuser = make_fuser(name, posterior, window=3)
    rng = np.random.default_rng(seed)
    crop = make_views(posterior, 1, seed)
    state = fuser.initial(1)
    for _ in range(6):
        logits = crop.logits * (1 + noise * rng.choice([-1.0, 1.0], size=crop.logits.shape))
        features = crop.features * (1 + noise * rng.choice([-1.0, 1.0], size=crop.features.shape))
        state = fuser.update(state, Views(logits, features))
        check_pmf(fuser.predict(state))


def bad_views(kind: str, good: Views) -> Views:
    logits, features = good.logits.copy(), good.features.copy()
    if kind == "nan logits":
        logits[1, 0, 0] = np.nan
    elif kind == "infinite features":
        features[0, 1, 2] = np.inf
    elif kind == "wrong class count":
        logits = logits[..., :-1]
    elif kind == "wrong feature count":
        features = features[..., :-1]
    elif kind == "wrong network count":
        logits, features = logits[:, :1], features[:, :1]
    elif kind == "fewer features than logits":
        features = features[:1]
    elif kind == "empty":
        logits, features = logits[:0], features[:0]
    elif kind == "another number of tracks":
        logits, features = logits[:1], features[:1]
    return Views(logits, features)


CAUSES = {
    "nan logits": "logits contains NaN",
    "infinite features": "features contains NaN or infinity",
    "wrong class count": r"logits has shape \(2, 3, 3\), expected \[tracks, 3, 4\]",
    "wrong feature count": "features has shape",
    "wrong network count": "logits has shape",
    "fewer features than logits": "2 rows of logits but 1 of features",
    "empty": "the state has 2 tracks but there are views of 0",
    "another number of tracks": "the state has 2 tracks but there are views of 1",
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", sorted(CAUSES))
def test_views_that_do_not_fit_are_refused_by_name_and_change_nothing(name, kind) -> None:
    posterior = make_posterior()
    fuser = make_fuser(name, posterior)
    good = make_views(posterior, 2)
    state = fuser.update(fuser.initial(2), good)
    before = copy.deepcopy(state)
    with pytest.raises(InputError, match=CAUSES[kind]):
        fuser.update(state, bad_views(kind, good))
    for f in fields(state):
        np.testing.assert_array_equal(getattr(state, f.name), getattr(before, f.name))


@pytest.mark.parametrize("name", NAMES)
def test_an_update_leaves_the_old_state_as_it_was(name) -> None:
    posterior = make_posterior()
    fuser = make_fuser(name, posterior, window=2)
    state = fuser.initial(2)
    for seed in range(4):
        before = copy.deepcopy(state)
        new = fuser.update(state, make_views(posterior, 2, seed))
        for f in fields(state):
            np.testing.assert_array_equal(getattr(state, f.name), getattr(before, f.name))
        state = new


def test_a_frame_without_tracks_is_no_error() -> None:
    posterior = make_posterior()
    for name in NAMES:
        fuser = make_fuser(name, posterior)
        state = fuser.update(fuser.initial(0), make_views(posterior, 0))
        assert fuser.predict(state).shape == (0, posterior.classes)
