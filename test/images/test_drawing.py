"""Drawing on frames: everything stays inside the image, and what matters can be seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lla_fusion_ros.images.crops import Pixels
from lla_fusion_ros.images.drawing import Label, draw_labels, to_bgr8

GREEN, RED = 1, 2


def label(warning: str = "", probability: float = 0.9) -> Label:
    return Label((160, 100, 60, 60), "7", (("stop", probability), ("yield", 1 - probability)), warning)


def drawn(*labels: Label) -> np.ndarray:
    image = np.full((240, 320, 3), 128, np.uint8)
    draw_labels(image, labels)
    return image


def test_the_box_is_drawn_around_the_object_and_the_rest_stays():
    image = drawn(label())
    assert (image[100, 130] != 128).any()  # left edge of the box
    assert (image[100, 160] == 128).all()  # its inside
    assert (image[:60] == 128).all()


def test_a_warned_object_is_red_a_sure_one_green():
    edge = (slice(80, 120), slice(129, 132))
    sure, warned = drawn(label())[edge].max(axis=(0, 1)), drawn(label("unknown"))[edge].max(axis=(0, 1))
    assert sure.argmax() == GREEN and warned.argmax() == RED


def test_an_object_that_cannot_be_told_is_neither_red_nor_green():
    thing = Label((160, 100, 60, 60), "7", (("stop", 0.85),), "cannot tell", grave=False)
    image = drawn(thing)
    blue, green, red = image[100, 130]
    assert red > 200 and green > 150 and blue < 100
    assert not (image == (50, 50, 230)).all(axis=2).any()


def test_a_longer_bar_means_a_more_probable_class():
    def bar(probability: float) -> int:
        image = drawn(Label((160, 100, 60, 60), "7", (("stop", probability),)))
        return int((image == (40, 100, 30)).all(axis=2).sum())

    assert bar(1.0) > bar(0.9) > bar(0.81) > 0


def test_labels_of_neighbours_do_not_cover_each_other():
    near = Label((160, 100, 40, 40), "7", (("stop", 1.0),))
    crowd = [
        near,
        Label((190, 110, 30, 30), "8", (("yield", 1.0),)),
        Label((150, 120, 30, 30), "9", (("x", 1.0),)),
    ]

    def bars(*labels: Label) -> int:
        return int((drawn(*labels) == (40, 100, 30)).all(axis=2).sum())

    assert bars(*crowd) >= 0.98 * sum(bars(label) for label in crowd)


@pytest.mark.parametrize(
    ("array", "order"),
    [
        (np.full((4, 5, 3), (1, 2, 3), np.uint8), "bgr"),
        (np.full((4, 5, 3), (3, 2, 1), np.uint8), "rgb"),
    ],
)
def test_any_order_of_channels_becomes_bgr(array, order):
    image = to_bgr8(Pixels(array, order))
    assert (image == (1, 2, 3)).all() and not np.shares_memory(image, array)


def test_sixteen_bit_gray_becomes_bgr8():
    assert (to_bgr8(Pixels(np.full((4, 5), 0x7F00, np.uint16), "mono")) == 0x7F).all()


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(*[st.floats(-500, 900)] * 2, *[st.floats(1, 900)] * 2),
    st.text(max_size=60),
    st.tuples(st.integers(1, 300), st.integers(1, 300)),
)
def test_any_box_and_text_can_be_drawn_on_any_image(box, text, shape):
    image = np.zeros((*shape, 3), np.uint8)
    draw_labels(image, [Label(box, text, ((text, 0.5),), text)])
