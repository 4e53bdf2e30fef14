"""The default fuser of every shipped bundle is safe, on stored views that nothing was fitted on.

`views_of_shipped_bundles.npz` holds, for each bundle, one view of up to 150 objects that the networks are
sure of (p >= .99) and 16 views that they are not, in 16 bits.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.fusion.along import flat_views
from lla_fusion_ros.fusion.safety import contradicted, least_lapse, opposed_views, repeated
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.types.views import Views
from support.processes import REPOSITORY

STORED = np.load(Path(__file__).parent / "views_of_shipped_bundles.npz")


@pytest.fixture(scope="module", params=["gtsrb", "belgium", "signworld"])
def shipped(request):
    """Bundle, its default fuser, and stored views, each a track of its own."""
    bundle = load_bundle(REPOSITORY / "models" / f"{request.param}.safetensors")
    logits, features = (
        STORED[f"{request.param}_{part}"].astype(np.float32)[:, None] for part in ("logits", "features")
    )
    label = STORED[f"{request.param}_label"].astype(int)
    tracks = TrackViews.of_one_camera(logits, features, np.ones(len(label), int), label)
    return bundle, bundle.fuser(), tracks, flat_views(bundle.posterior(), logits, features)


def test_sure_views_that_contradict_each_other_leave_both_classes_open(shipped):
    _, fuser, tracks, views = shipped
    opposed = opposed_views(views, tracks)
    surest = contradicted(fuser, views, opposed).max(axis=-1)  # once each, 15 times each
    assert surest.shape[1] >= 300
    assert np.median(surest[-1]) <= 0.7
    assert ((surest > 0.9).mean(axis=1) <= 0.05).all()


def test_one_side_wins_once_it_outweighs_the_other(shipped):
    _, fuser, tracks, views = shipped
    opposed = opposed_views(views, tracks)
    first, second = (views.take(rows) for rows in (opposed.first, opposed.second))
    rows = np.arange(len(opposed.first))
    shares = []
    for more in (1, 4):
        state = fuser.update(fuser.initial(len(rows)), first)
        for _ in range(more):
            state = fuser.update(state, second)
        shares.append(fuser.predict(state)[rows, opposed.classes[:, 1]])
    assert (shares[1] > shares[0]).mean() > 0.95
    assert np.median(shares[1]) > 0.7


def test_one_odd_frame_is_not_shown_as_sure(shipped):
    """Five unsure views of an object, then a sure one of another."""
    _, fuser, tracks, views = shipped
    unsure = np.flatnonzero(views.mean_pmf.max(axis=1) < 0.99)
    assert len(unsure) >= 10
    sure = np.setdiff1d(np.arange(len(tracks)), unsure)
    mine, odd = np.repeat(unsure, 20), np.resize(np.random.default_rng(0).permutation(sure), 20 * len(unsure))
    differ = views.top[mine] != views.top[odd]
    mine, odd = mine[differ], odd[differ]
    state = fuser.initial(len(mine))
    for _ in range(5):
        state = fuser.update(state, views.take(mine))
    shown = fuser.predict(fuser.update(state, views.take(odd)))[np.arange(len(odd)), views.top[odd]]
    assert (shown > 0.9).mean() <= 0.02


def test_one_frame_again_and_again_makes_nothing_surer(shipped):
    _, fuser, tracks, views = shipped
    once, again = repeated(fuser, views, np.arange(len(tracks)))
    np.testing.assert_allclose(again, once, atol=1e-9)


def test_a_parked_car_sees_little_more_than_one_view(shipped):
    """The same sign with a little noise in everything the networks say, 100 times."""
    _, fuser, tracks, views = shipped
    rng = np.random.default_rng(0)
    state = fuser.initial(len(tracks))
    once = fuser.predict(fuser.update(state, views))
    for _ in range(100):
        noisy = (a * (1 + 0.03 * rng.normal(size=a.shape)) for a in (views.logits, views.features))
        state = fuser.update(state, Views(*noisy))
    rise = fuser.predict(state).max(axis=1) - once.max(axis=1)
    assert rise.mean() < 0.02


def test_it_is_never_surer_than_its_validation_objects_support(shipped):
    bundle, fuser, tracks, views = shipped
    least = least_lapse(bundle.meta.dataset["tracks"]["validation"])
    rng = np.random.default_rng(1)
    state = fuser.initial(len(tracks))
    for step in range(30):  # the networks ever surer, the views ever different
        sharper = views.logits * (1 + step)
        state = fuser.update(state, Views(sharper, rng.permutation(views.features)))
        assert fuser.predict(state).max() <= 1 - least + 1e-12
