"""Every fuser is there, and adding one is adding a file."""

from __future__ import annotations

import numpy as np
import pytest

import lla_fusion_ros.fusion as fusion
from lla_fusion_ros.fusion import fusers, make_fuser
from lla_fusion_ros.types.errors import InputError
from support.tiny_posterior import make_posterior

NAMES = {
    "last", "vote", "mean_pmf", "ema", "log_odds", "product", "log_linear", "mc_product", "wls", "ella",
    "ella_mixture", "pool", "wls_robust", "hybrid", "reliability", "evidence_pool",
}  # fmt: skip

NEW_FUSER = '''
from lla_fusion_ros.fusion.mean_pmf import MeanPmf

class Copy(MeanPmf):
    """A fuser of a user."""
    name = "copy_of_mean"
'''


def test_every_fuser_is_offered() -> None:
    assert set(fusers()) >= NAMES


def test_a_fuser_is_added_by_adding_a_file(tmp_path, monkeypatch) -> None:
    (tmp_path / "copy_of_mean.py").write_text(NEW_FUSER)
    monkeypatch.setattr(fusion, "__path__", [*fusion.__path__, str(tmp_path)])
    fusers.cache_clear()
    try:
        assert "copy_of_mean" in fusers()
        assert make_fuser("copy_of_mean", make_posterior()).name == "copy_of_mean"
    finally:
        monkeypatch.undo()
        fusers.cache_clear()


def test_an_unknown_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(InputError, match="no fuser 'median'.*reliability"):
        make_fuser("median", make_posterior())


def test_an_unknown_value_is_refused_with_the_values_there_are() -> None:
    with pytest.raises(InputError, match="fuser 'pool' has no value 'speed'.*gamma"):
        make_fuser("pool", make_posterior(), {"speed": 1.0})


@pytest.mark.parametrize("value", [-1.0, 1e9, float("nan"), "high", [1.0]])
def test_a_value_out_of_bounds_is_refused(value) -> None:
    with pytest.raises(InputError, match="value 'gamma' of fuser 'pool'"):
        make_fuser("pool", make_posterior(), {"gamma": value})


def test_negative_weights_are_refused() -> None:
    for name in ("ella", "log_linear"):
        with pytest.raises(InputError, match="none may be negative"):
            make_fuser(name, make_posterior(), {"weights": [1.0, -0.5, 0.5]})


def test_weights_for_another_number_of_networks_are_refused() -> None:
    with pytest.raises(InputError, match="2 weights for 3 networks"):
        make_fuser("ella", make_posterior(), {"weights": [0.5, 0.5]})


def test_a_window_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="window"):
        make_fuser("wls", make_posterior(), window=0)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_track_that_has_seen_nothing_is_uniform(name) -> None:
    posterior = make_posterior()
    fuser = make_fuser(name, posterior)
    np.testing.assert_allclose(fuser.predict(fuser.initial(2)), 1.0 / posterior.classes, atol=2e-3)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_start_value_lies_within_its_bounds(name) -> None:
    for scalar in (fusers()[name].scalars | fusers()[name].options).values():
        assert scalar.low <= scalar.start <= scalar.high
