"""What a fuser costs is known, and refused where it is too much, before anything is allocated."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.bundle.resources import find_model
from lla_fusion_ros.engine.cost import bytes_per_track, check_cost
from lla_fusion_ros.engine.engine import FusionEngine, Observation
from lla_fusion_ros.fusion import fusers, make_fuser
from lla_fusion_ros.fusion.hypotheses import ChangeRates
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.views import state_bytes
from lla_fusion_ros.warnings.model import USUAL_CHANGE
from support.tiny_posterior import make_posterior, make_views


class Model:
    """A posterior as a model for the engine."""

    reserved = ()

    def __init__(self, posterior):
        self._posterior = posterior

    def posterior(self):
        return self._posterior

    def fuser(self, name=None, window=30):
        return make_fuser(name or "pool", self._posterior, window=window)

    def warning_model(self):
        return None

    def change_rates(self):
        return ChangeRates()

    def change_alarm(self):
        return USUAL_CHANGE

    def changing(self, named=""):
        return np.zeros(self._posterior.classes, bool)


@pytest.mark.parametrize("name", fusers())
@pytest.mark.parametrize("cross", [False, True])
def test_the_cost_of_a_track_is_what_its_state_takes(name, cross) -> None:
    fuser = make_fuser(name, make_posterior(cross=cross), window=5)
    assert bytes_per_track(fuser) * 3 == state_bytes(fuser.initial(3))


@pytest.mark.parametrize("model", ["signworld", "gtsrb", "belgium"])
def test_every_fuser_of_the_shipped_models_is_affordable_by_default(model) -> None:
    bundle = load_bundle(find_model(model))
    for name in fusers():
        check_cost(bundle.fuser(name, FusionSettings().window), FusionSettings())


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (FusionSettings(fuser="wls", window=100, capacity=10), "'window' 100 takes about .* ms"),
        (FusionSettings(fuser="wls", window=50, capacity=10), "set a smaller 'window'"),  # features: 49
        (
            FusionSettings(fuser="wls", capacity=100_000),
            "8[0-9].* GB in all.* 'capacity' to at most 3[0-9]{3}",
        ),
    ],
)
def test_what_a_shipped_model_cannot_bear_is_refused_with_the_way_out(settings, says) -> None:
    bundle = load_bundle(find_model("signworld"))
    with pytest.raises(InputError, match=f"fuser 'wls'.*{says}"):
        FusionEngine(bundle, settings)


def test_a_refused_change_takes_no_memory_and_leaves_the_tracks_as_they_were() -> None:
    posterior = make_posterior(networks=5, classes=40, features=12)
    model = Model(posterior)
    engine, same = FusionEngine(model), FusionEngine(model)
    frames = [
        Observation("front", step * 10**8, ("a", "b"), make_views(posterior, 2, step)) for step in (1, 2)
    ]
    for each in (engine, same):
        each.update(frames[0])
    tracemalloc.start()
    for refused in (FusionSettings(fuser="wls", window=100), FusionSettings(fuser="wls", capacity=100_000)):
        with pytest.raises(InputError, match="wls"):
            engine.configure(refused)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6, f"{peak / 1e6:.0f} MB"
    assert engine.settings == FusionSettings()
    np.testing.assert_array_equal(engine.update(frames[1]).pmf, same.update(frames[1]).pmf)


def test_a_change_is_prepared_without_effect_and_then_taken() -> None:
    posterior = make_posterior()
    engine, fresh = (
        FusionEngine(Model(posterior)),
        FusionEngine(Model(posterior), FusionSettings(fuser="wls")),
    )
    views = make_views(posterior, 1)
    engine.update(Observation("front", 10**8, ("a",), views))
    change = engine.prepare(FusionSettings(fuser="wls"))
    assert (engine.fuser.name, engine.tracks) == ("pool", 1)
    engine.take(change)
    assert (engine.fuser.name, engine.tracks) == ("wls", 0)
    later = Observation("front", 2 * 10**8, ("a",), views)
    np.testing.assert_array_equal(engine.update(later).pmf, fresh.update(later).pmf)
