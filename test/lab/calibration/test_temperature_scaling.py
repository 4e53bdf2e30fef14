"""Temperature scaling finds the factor by which logits are too large."""

import numpy as np
import pytest

from lla_fusion_ros.lab.calibration.network_calibration import fit_temperature, temperature_scaled
from lla_fusion_ros.types.metrics import nll
from lla_fusion_ros.types.pmf import softmax


@pytest.mark.parametrize("scale", [0.5, 1.0, 4.0])
def test_the_fitted_temperature_undoes_the_scale_of_the_logits(scale):
    rng = np.random.default_rng(0)
    truth = 2 * rng.normal(size=(20_000, 5))
    label = (rng.random((20_000, 1)) > softmax(truth).cumsum(-1)).sum(-1).clip(0, 4)
    temperature = fit_temperature(scale * truth, label)
    assert temperature == pytest.approx(scale, rel=0.05)
    best = nll(temperature_scaled(scale * truth, temperature), label)
    assert best <= min(
        nll(temperature_scaled(scale * truth, f * temperature), label) for f in (0.9, 1.0, 1.1)
    )


def test_the_most_probable_class_stays():
    logits = np.random.default_rng(1).normal(size=(50, 4))
    np.testing.assert_array_equal(temperature_scaled(logits, 7.0).argmax(1), logits.argmax(1))
