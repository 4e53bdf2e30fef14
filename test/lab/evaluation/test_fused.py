"""Predictions after every frame, and what users see of them."""

import numpy as np
import pytest

from lla_fusion_ros.engine.engine import FusionEngine, Observation
from lla_fusion_ros.fusion.along import flat_views
from lla_fusion_ros.lab.evaluation.fused import fuse_tracks
from lla_fusion_ros.lab.evaluation.track_scores import track_scores
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.track_views import TrackViews
from support.tiny_bundle import tiny_bundle


def random_tracks(bundle, lengths=(5, 2, 4), seed=0):
    rng = np.random.default_rng(seed)
    count, steps = len(lengths), max(lengths)
    posterior = bundle.posterior()
    shape = (count, steps, posterior.networks)
    features = rng.normal(size=(*shape, posterior.features))
    features[..., -1] = 1
    return TrackViews(
        logits=rng.normal(0, 2, (*shape, posterior.classes)).astype(np.float32),
        features=features.astype(np.float32),
        camera=np.zeros((count, steps), int),
        steps=np.array(lengths),
        label=rng.integers(0, posterior.classes, count),
        regime=np.full(count, "clean"),
        source=np.arange(count),
    )


@pytest.mark.parametrize("name", ["pool", "mean_pmf", "wls", "ella"])
def test_whole_tracks_give_what_the_nodes_would_give_frame_by_frame(name):
    bundle = tiny_bundle()
    tracks = random_tracks(bundle)
    fuser = bundle.fuser(name)
    views = flat_views(bundle.posterior(), tracks.logits, tracks.features)
    fused = fuse_tracks(fuser, tracks, views, bundle.change_rates())
    for track, steps in enumerate(tracks.steps):
        engine = FusionEngine(bundle, FusionSettings(fuser=name, warnings=False))
        for step in range(steps):
            seen = tracks.take(np.array([track])).views_at(step)
            result = engine.update(Observation("front", (step + 1) * 100_000_000, ["a"], seen))
            np.testing.assert_allclose(fused.pmf[track, step], result.pmf[0], atol=1e-9)


def test_a_short_track_counts_with_all_it_has_and_a_class_that_is_never_right_settles_past_the_end():
    bundle = tiny_bundle()
    tracks = random_tracks(bundle)
    views = flat_views(bundle.posterior(), tracks.logits, tracks.features)
    fused = fuse_tracks(bundle.fuser("last"), tracks, views)
    np.testing.assert_array_equal(fused.after(5)[1], fused.pmf[1, 1])
    assert [len(shown) for shown in fused.shown(3)] == [3, 2, 3]
    never = [next(c for c in range(4) if c not in pmf.argmax(axis=1)) for pmf in fused.pmf[:, :3]]
    assert track_scores(fused, np.array(never), 3).settle.tolist() == [4, 3, 4]
