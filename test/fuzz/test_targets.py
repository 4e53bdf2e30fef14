"""Bytes from outside are read, or refused with an error of this package; nothing else may happen."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
# Each of these examples writes files and opens databases or builds networks.
SLOW = {"bag_mcap", "bag_sqlite3", "bag_metadata", "bundle", "bundle_document"}

numbers = st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1])


@st.composite
def damaged(draw: st.DrawFn, seeds: list[bytes]) -> bytes:
    """A good input with bytes changed, numbers replaced, parts left out, doubled or cut off."""
    data = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(1, 4))):
        if not data:
            break
        at = draw(st.integers(0, len(data) - 1))
        match draw(st.sampled_from(["byte", "number", "cut", "double", "insert", "end"])):
            case "byte":
                data[at] = draw(st.integers(0, 255))
            case "number":
                width = draw(st.sampled_from([2, 4, 8]))
                number = draw(numbers) % 256**width
                data[at : at + width] = number.to_bytes(width, draw(st.sampled_from(["little", "big"])))
            case "cut":
                del data[at : at + draw(st.integers(1, 40))]
            case "double":
                data[at:at] = data[at : at + draw(st.integers(1, 200))]
            case "insert":
                data[at:at] = draw(st.binary(max_size=20))
            case "end":
                del data[at:]
    return bytes(data)


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_good_input_is_accepted(name) -> None:
    """The first seed of each target is good; others may be meant to be refused."""
    accepted = [TARGETS[name](data) for data in TARGETS[name].seeds()]
    assert accepted[0]


@pytest.mark.parametrize("name", sorted(TARGETS))
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damaged_input_is_read_or_refused(name, data) -> None:
    target = TARGETS[name]
    for _ in range(1 if name in SLOW else 3):
        target(data.draw(damaged(target.seeds())))


@pytest.mark.parametrize("name", sorted(TARGETS))
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(name, data) -> None:
    TARGETS[name](data)


def finds() -> list[Path]:
    return sorted(file for file in CORPUS.glob("*/*") if file.is_file())


@pytest.mark.parametrize("file", finds(), ids=lambda file: f"{file.parent.name}/{file.name}")
def test_what_fuzzing_once_found_stays_fixed(file) -> None:
    TARGETS[file.parent.name](file.read_bytes())


def test_the_corpus_is_small_and_of_known_targets() -> None:
    assert all(file.parent.name in TARGETS for file in finds())
    assert sum(file.stat().st_size for file in finds()) < 500_000
