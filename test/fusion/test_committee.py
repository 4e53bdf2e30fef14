"""Two learned pools and the mean of what they say."""

import numpy as np
import pytest

from lla_fusion_ros.errors import InputError
from lla_fusion_ros.fusion import make_fuser
from lla_fusion_ros.fusion.along import flat_views, pmf_along
from lla_fusion_ros.fusion.committee import SIGNS
from lla_fusion_ros.fusion.quality import QUALITY
from support.tiny_bundle import tiny_bundle
from support.tracks_with_bad_frames import tracks_with_bad_frames


def pmfs(name, posterior, values, logits, features):
    fuser = make_fuser(name, posterior, values)
    return pmf_along(fuser, flat_views(posterior, logits, features), logits.shape[1])


def among_all(vector, empty):
    """The entries of the two signs at their places among all signs."""
    return [dict(zip(SIGNS, vector, strict=True)).get(name, empty) for name in QUALITY]


def test_it_is_the_mean_of_a_reliable_pool_and_a_reliability_fuser_with_two_signs():
    posterior = tiny_bundle().posterior()
    logits, features, _, _ = tracks_with_bad_frames(posterior)
    linear = {"alpha": 0.2, "temperature": 0.6, "view_temperature": 1.7}
    log = {"a": 0.4, "b": 0.3}
    standard = {"center": [0.5, -1.0], "scale": [0.8, 1.5]}
    values = {"linear_theta": [-1.0, 0.7], "log_theta": [-0.4, -0.2], **standard, **linear, **log}
    places = {"center": among_all(standard["center"], 0.0), "scale": among_all(standard["scale"], 1.0)}
    fused = pmfs("committee", posterior, {**values, "prior": 1.0}, logits, features)
    pool = {"theta": among_all([-1.0, 0.7], 0.0), **places, **linear, "prior": 1.0}
    expected = pmfs("reliable_pool", posterior, pool, logits, features)
    plain = posterior.with_prior(1.0).with_temperature(1.0)  # `reliability` takes the posterior's own prior
    product = {"theta": among_all([-0.4, -0.2], 0.0), **places, **log}
    expected = (expected + pmfs("reliability", plain, product, logits, features)) / 2
    np.testing.assert_allclose(fused, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("values", "named"),
    [({"linear_theta": [1.0]}, "linear_theta"), ({"scale": [1.0, 0.0]}, "scale"), ({"theta": 1.0}, "theta")],
)
def test_values_that_do_not_fit_are_refused_by_name(values, named):
    with pytest.raises(InputError, match=named):
        make_fuser("committee", tiny_bundle().posterior(), values)
