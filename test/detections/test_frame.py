"""Boxes in a network's pixels land where they belong in the image."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lla_fusion_ros.detections import BOX_FRAMES, to_image_pixels
from lla_fusion_ros.types.errors import InputError

NETWORK, IMAGE = (640, 640), (1280, 720)
BOX = [[320.0, 320.0, 0.0, 64.0, 32.0]]  # in the middle


@pytest.mark.parametrize(
    "frame, box, expected",
    [
        ("image", [100, 50, 0, 20, 10], [100, 50, 0, 20, 10]),
        ("stretch", [320, 320, 0, 64, 32], [640, 360, 0, 128, 36]),
        ("stretch", [640, 640, 0, 64, 32], [1280, 720, 0, 128, 36]),
        # half the size, 140 pixels above and below
        ("letterbox", [0, 140, 0, 64, 32], [0, 0, 0, 128, 64]),
        ("letterbox", [640, 500, 0, 64, 32], [1280, 720, 0, 128, 64]),
        # 640/720 of the size, 137.8 wide of the right and left cut off
        ("crop", [320, 0, 0, 64, 64], [640, 0, 0, 72, 72]),
        ("crop", [0, 640, 0, 64, 64], [280, 720, 0, 72, 72]),
    ],
)
def test_hand_made_numbers(frame, box, expected):
    np.testing.assert_allclose(to_image_pixels(np.array([box], float), frame, NETWORK, IMAGE), [expected])


def test_a_turned_box_keeps_its_corners_under_even_scaling_and_its_axis_under_stretch():
    turned = np.array([[320, 320, 0.5, 64, 32]])
    np.testing.assert_allclose(to_image_pixels(turned, "letterbox", NETWORK, IMAGE)[0, 2:], [0.5, 128, 64])
    quarter = np.array([[320, 320, np.pi / 2, 64, 32]])  # its width lies along y
    np.testing.assert_allclose(
        to_image_pixels(quarter, "stretch", NETWORK, IMAGE)[0, 2:], [np.pi / 2, 72, 64], atol=1e-9
    )


side = st.integers(16, 4000)


@settings(max_examples=100, deadline=None)
@given(
    frame=st.sampled_from(BOX_FRAMES),
    network=st.tuples(side, side),
    image=st.tuples(side, side),
    box=st.tuples(*[st.floats(-1e3, 1e3)] * 2, st.just(0.0), *[st.floats(0.1, 1e3)] * 2),
)
def test_what_the_network_sees_is_found_again(frame, network, image, box):
    """The forward way, written down independently: resize, then shift by the margin."""
    shares = np.array([network[0] / image[0], network[1] / image[1]])
    scale = {"letterbox": shares.min(), "crop": shares.max(), "stretch": shares, "image": 1.0}[frame]
    shift = 0.0 if frame == "image" else (np.array(network) - np.array(image) * scale) / 2
    x = np.array(box)
    forward = np.concatenate([x[:2] * scale + shift, [0.0], x[3:] * scale])
    np.testing.assert_allclose(
        to_image_pixels(forward[None], frame, network, image)[0], x, rtol=1e-6, atol=1e-6
    )


def test_what_cannot_be_is_refused_with_a_sentence():
    with pytest.raises(InputError, match="box_frame is 'letter'"):
        to_image_pixels(np.array(BOX), "letter", NETWORK, IMAGE)
    with pytest.raises(InputError, match="needs box_size"):
        to_image_pixels(np.array(BOX), "stretch", (0, 0), IMAGE)
    assert to_image_pixels(np.empty((0, 5)), "crop", NETWORK, IMAGE).shape == (0, 5)
