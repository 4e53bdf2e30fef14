"""When recorded messages are due."""

from __future__ import annotations

import pytest

from lla_fusion_ros.bags.player import PlayClock, PlayOptions, latched_before, rounds
from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.writer import BagWriter
from lla_fusion_ros.messages.contract import DETECTIONS, LABEL_INFO
from lla_fusion_ros.types.errors import BagError, InputError

SECOND = 10**9
EMPTY = b"\x00\x01\x00\x00" + bytes(16)


class Wall:
    """A wall clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def bag(tmp_path):
    with BagWriter(tmp_path / "bag") as writer:
        writer.add("/labels", LABEL_INFO, latched=True)
        writer.add("/tracks", DETECTIONS)
        writer.write("/labels", 10 * SECOND, EMPTY)
        for second in range(10, 15):
            writer.write("/tracks", second * SECOND, EMPTY)
    with Bag(tmp_path / "bag") as opened:
        yield opened


@pytest.mark.parametrize("rate", [0.5, 1.0, 4.0])
def test_recorded_time_runs_at_the_rate(rate):
    wall = Wall()
    clock = PlayClock(rate, wall)
    clock.restart(10 * SECOND)
    assert clock.until(12 * SECOND) == pytest.approx(2 / rate)
    wall.seconds += 1 / rate
    assert clock.time() == pytest.approx(11 * SECOND)
    wall.seconds += 10
    assert clock.until(12 * SECOND) == 0.0


def test_a_pause_holds_the_recorded_time():
    wall = Wall()
    clock = PlayClock(1.0, wall)
    clock.restart(0)
    wall.seconds += 3
    clock.toggle()
    wall.seconds += 100
    assert clock.until(SECOND) is None
    assert clock.time() == 3 * SECOND
    clock.toggle()
    wall.seconds += 1
    assert clock.time() == 4 * SECOND


def test_start_skips_and_loop_repeats(bag):
    passes = rounds(bag, ["/tracks"], PlayOptions(start=2.5, loop=True))
    for _ in range(3):
        start, messages = next(passes)
        assert start == 12.5 * SECOND
        assert [message.time // SECOND for message in messages] == [13, 14]


def test_without_loop_there_is_one_pass(bag):
    assert len([list(messages) for _, messages in rounds(bag, ["/tracks"], PlayOptions())]) == 1


def test_a_start_beyond_the_end_is_refused(bag):
    with pytest.raises(BagError, match="which lasts 4.0 s"):
        next(rounds(bag, ["/tracks"], PlayOptions(start=100)))


@pytest.mark.parametrize("options", [{"rate": 0}, {"rate": -1}, {"rate": float("nan")}, {"start": -1}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InputError, match=next(iter(options))):
        PlayOptions(**options)


def test_latched_messages_that_were_skipped_are_still_due(bag):
    assert [message.topic for message in latched_before(bag, 12 * SECOND)] == ["/labels"]
    assert latched_before(bag, 10 * SECOND) == []
