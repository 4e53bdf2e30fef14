"""Settings carry their own manual and refuse what makes no sense."""

from __future__ import annotations

from dataclasses import fields

import pytest

from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.settings import FusionSettings, hazard_of


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("capacity", 0),
        ("capacity", 2.5),
        ("capacity", True),
        ("idle_timeout", -1.0),
        ("idle_timeout", float("nan")),
        ("max_age", "long"),
        ("ood_false_alarm", 0.9),
        ("warnings", 1),
    ],
)
def test_a_bad_value_is_refused_by_name(name, value) -> None:
    with pytest.raises(InputError, match=f"'{name}'"):
        FusionSettings(**{name: value})


def test_a_clock_jump_must_be_larger_than_the_lateness_allowed() -> None:
    with pytest.raises(InputError, match="'clock_jump'.*'max_lateness'"):
        FusionSettings(max_lateness=3.0, clock_jump=2.0)


def test_every_setting_has_a_description_and_numbers_have_a_range() -> None:
    for f in fields(FusionSettings):
        assert len(f.metadata["description"]) > 10
        if f.type in ("int", "float"):
            assert f.metadata["low"] < f.metadata["high"]


@pytest.mark.parametrize(("half_life", "hazard"), [(0.5, 2.0), (1.0, 1.0), (1e-4, 100.0), (0.0, 0.1)])
def test_an_old_half_life_is_a_hazard_and_a_sentence_says_so(half_life, hazard) -> None:
    found, sentence = hazard_of(half_life)
    assert found == FusionSettings(class_hazard=found).class_hazard == hazard
    assert f"'class_hazard' {hazard:g}" in sentence
