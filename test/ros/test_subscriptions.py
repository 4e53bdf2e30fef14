"""What DDS lost, told from the numbers of the messages that came."""

from __future__ import annotations

from lla_fusion_ros.ros.subscriptions import Gaps


def missing(numbers: list[int | None], publishers: int = 1) -> list[int]:
    gaps = Gaps()
    return [gaps.before(number, publishers) for number in numbers]


def test_a_gap_in_the_numbers_is_a_loss():
    assert missing([7, 8, 11, 12, 20]) == [0, 0, 2, 0, 7]


def test_a_publisher_that_starts_again_is_no_loss():
    assert missing([98, 99, 1, 2, 4]) == [0, 0, 0, 0, 1]


def test_numbers_of_two_publishers_and_middleware_without_numbers_say_nothing():
    assert missing([5, 90, 6, 91], publishers=2) == [0, 0, 0, 0]
    assert missing([None, None]) == [0, 0]


def test_numbers_that_go_back_again_and_again_are_those_of_two_publishers():
    def mixed(numbers: list[int], publishers: int) -> bool:
        gaps = Gaps()
        for number in numbers:
            gaps.before(number, publishers)
        return gaps.mixed

    assert mixed([5, 90, 6, 91, 7, 92, 8], publishers=2)
    assert mixed([5, 5, 6, 6, 7, 7], publishers=2)
    assert not mixed([97, 98, 1, 2, 3, 4], publishers=2)  # one died and is still known, one has begun
    assert not mixed([5, 4, 3, 2, 1], publishers=1)
