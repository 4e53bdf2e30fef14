"""Calibration by networks that have not seen the tracks."""

from dataclasses import replace

import numpy as np
import pytest

from lla_fusion_ros.fusion import make_fuser
from lla_fusion_ros.fusion.along import flat_views, pmf_along
from lla_fusion_ros.lab.calibration.cross_fit import all_tracks, apart, left_out, side_by_side
from lla_fusion_ros.lab.datasets import split_tracks
from lla_fusion_ros.types.errors import InputError
from support.feature_world import FeatureWorld
from support.toy_tracks import toy_tracks


def test_every_track_kept_aside_is_left_out_once_and_only_the_last_networks_see_all():
    splits = split_tracks(toy_tracks(per_class=14))
    whole = all_tracks(splits)
    every = {track.id for track in whole.train.tracks}
    assert len(every) == 42 and not whole.test.tracks
    unseen = []
    for train, aside in left_out(splits):
        seen = {track.id for track in train.tracks}
        assert seen | {track.id for track in aside.tracks} == every
        assert not seen & {track.id for track in aside.tracks}
        unseen += [track.id for track in aside.tracks]
    assert sorted(unseen) == sorted(track.id for track in whole.validation.tracks)


def test_without_test_tracks_there_is_nothing_to_leave_out_in_turn():
    with pytest.raises(InputError, match="validation and test"):
        left_out(split_tracks(toy_tracks(), fractions=(0.8, 0.2, 0.0)))


@pytest.mark.parametrize("name", ["evidence_pool", "ella", "wls_robust", "wls", "reliability", "hybrid"])
def test_views_of_two_ensembles_are_each_fused_under_their_own_posterior(name):
    worlds = FeatureWorld(1), FeatureWorld(2)
    views = apart([worlds[0].known(7, steps=5), worlds[1].known(4, steps=3)])
    joint, together = side_by_side([world.posterior for world in worlds], views)
    assert together.objects == 11
    fused = pmf_along(make_fuser(name, joint), flat_views(joint, together.logits, together.features), 5)
    for world, own, rows in zip(worlds, views, (fused[:7], fused[7:]), strict=True):
        alone = flat_views(world.posterior, own.logits, own.features)
        expected = pmf_along(make_fuser(name, world.posterior), alone, own.longest)
        np.testing.assert_allclose(rows[:, : own.longest], expected, atol=2e-5)


def test_one_ensemble_stays_as_it_is():
    world = FeatureWorld()
    views = world.known(5)
    assert side_by_side([world.posterior], [views]) == (world.posterior, views)


def test_the_covariance_between_networks_of_different_ensembles_is_refused():
    world = FeatureWorld()
    crossed = replace(world.posterior, cross=np.zeros((3, *world.posterior.factors.shape)))
    with pytest.raises(InputError, match="--cross"):
        side_by_side([crossed, crossed], [world.known(3), world.known(3)])
