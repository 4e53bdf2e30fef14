"""The learned pool."""

import numpy as np
import pytest

from lla_fusion_ros.fusion import fusers, make_fuser
from lla_fusion_ros.fusion.along import flat_views, pmf_along
from lla_fusion_ros.fusion.measure import QUALITY_FEATURES
from lla_fusion_ros.types.track_views import TrackViews
from support.tiny_bundle import tiny_bundle
from support.tracks_with_bad_frames import tracks_with_bad_frames


def pmfs(name, posterior, values, logits, features):
    fuser = make_fuser(name, posterior, values)
    return pmf_along(fuser, flat_views(posterior, logits, features), logits.shape[1])


def test_with_entropy_alone_it_is_the_pool():
    posterior = tiny_bundle().posterior()
    logits, features, _, _ = tracks_with_bad_frames(posterior)
    common = {"alpha": 0.3, "temperature": 0.7, "view_temperature": 1.0}
    theta = [-2.0 if name == "entropy" else 0.0 for name in QUALITY_FEATURES]
    learned = pmfs("reliable_pool", posterior, {"theta": theta, **common}, logits, features)
    np.testing.assert_allclose(
        learned, pmfs("pool", posterior, {"gamma": 2.0, **common}, logits, features), atol=1e-12
    )


@pytest.mark.parametrize("learned", ["reliable_pool", "dual_pool"])
def test_the_fit_learns_to_distrust_frames_that_only_their_features_give_away(learned):
    posterior = tiny_bundle().posterior()
    fitted_on = TrackViews.of_one_camera(*tracks_with_bad_frames(posterior, seed=1))
    values = fusers()[learned].fit(posterior, fitted_on)
    logits, features, steps, label = tracks_with_bad_frames(posterior, seed=2)

    def loss(name, values):
        pmf = pmfs(name, posterior, values, logits, features)[:, -1]
        return -np.log(pmf[np.arange(len(label)), label]).mean()

    assert loss(learned, values) < 0.6 * loss("mean_pmf", {})
    assert loss(learned, values) < 0.8 * loss("pool", {"gamma": 2.0, "alpha": 0.3})
