"""Decoding, box checks and crops, against direct numpy and OpenCV computations."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lla_fusion_ros.images.crops import Pixels, check_boxes, cut_crops, decode_compressed, decode_image
from lla_fusion_ros.types.errors import InputError


def gradient(height: int = 24, width: int = 32) -> np.ndarray:
    """An RGB image in which every pixel differs.  [height, width, 3]"""
    y, x = np.mgrid[:height, :width]
    return np.stack([x * 7, y * 9, x + y * 3], axis=-1).astype(np.uint8)


def as_rgb8(pixels: Pixels) -> np.ndarray:
    """Full image through the crop path: one box that covers all of it."""
    height, width = pixels.shape
    side = max(height, width)
    return cut_crops(pixels, np.array([[side / 2, side / 2, side, side]]), side, 0.0)[0][:height, :width]


@pytest.mark.parametrize("encoding", ["rgb8", "bgr8", "rgba8", "bgra8", "8UC3"])
def test_colour_encodings_give_the_same_rgb_pixels(encoding):
    rgb = gradient()
    stored = rgb if encoding.startswith("rgb") else rgb[..., ::-1]
    if encoding.endswith("a8"):
        stored = np.concatenate([stored, np.full((*rgb.shape[:2], 1), 9, np.uint8)], axis=-1)
    data = np.ascontiguousarray(stored).tobytes()
    step = stored.shape[1] * stored.shape[2]
    np.testing.assert_array_equal(as_rgb8(decode_image(encoding, *rgb.shape[:2], step, False, data)), rgb)


@pytest.mark.parametrize("big_endian", [False, True])
def test_sixteen_bit_mono_keeps_its_upper_byte_in_either_byte_order(big_endian):
    gray = (gradient()[..., 0].astype(np.uint16) << 8) | 0x5A
    data = gray.astype(">u2" if big_endian else "<u2").tobytes()
    crop = as_rgb8(decode_image("mono16", 24, 32, 64, big_endian, data))
    np.testing.assert_array_equal(crop, np.repeat((gray >> 8)[..., None], 3, axis=-1))


def test_bayer_and_yuv_images_come_out_in_the_right_colours():
    red = np.zeros((16, 16), np.uint8)
    red[0::2, 0::2] = 200  # the R of RGGB
    crop = as_rgb8(decode_image("bayer_rggb8", 16, 16, 16, False, red.tobytes()))[4:12, 4:12]
    assert crop[..., 0].min() > 150 and crop[..., 1:].max() == 0
    yuyv = np.tile(np.array([81, 90, 81, 240], np.uint8), (16, 8))  # pure red in BT.601
    crop = as_rgb8(decode_image("yuv422_yuy2", 16, 16, 32, False, yuyv.tobytes()))
    assert crop[..., 0].min() > 240 and crop[..., 1:].max() < 15


def test_plain_decoding_is_a_view_of_the_message_bytes_and_honours_padding():
    rgb = gradient()
    padded = np.zeros((24, 32 * 3 + 5), np.uint8)
    padded[:, : 32 * 3] = rgb.reshape(24, -1)
    pixels = decode_image("rgb8", 24, 32, 101, False, padded)
    assert np.shares_memory(pixels.array, padded)
    np.testing.assert_array_equal(pixels.array, rgb)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"data": b"\0" * 100}, "only 100 bytes"),
        ({"step": 10}, "step 10 is less"),
        ({"height": 10_000, "width": 10_000, "step": 30_000, "data": b""}, "larger than"),
        ({"height": 0}, "empty"),
        ({"height": 2**32 - 1, "width": 2**32 - 1}, "larger than"),
        ({"encoding": "32FC1"}, "'32FC1' is not one of"),
    ],
)
def test_an_image_whose_header_lies_is_refused_with_the_reason(change, says):
    good = {
        "encoding": "rgb8",
        "height": 24,
        "width": 32,
        "step": 96,
        "is_bigendian": False,
        "data": gradient().tobytes(),
    }
    with pytest.raises(InputError, match=says):
        decode_image(**{**good, **change})


def encoded(extension: str, image: np.ndarray | None = None) -> bytes:
    return cv2.imencode(extension, gradient() if image is None else image)[1].tobytes()


def test_png_is_lossless_and_jpeg_close():
    rgb = gradient()
    png = decode_compressed(encoded(".png", rgb[..., ::-1]), "bgr8; png compressed bgr8")
    np.testing.assert_array_equal(as_rgb8(png), rgb)
    smooth = cv2.GaussianBlur(rgb, (5, 5), 2)
    jpeg = decode_compressed(encoded(".jpg", smooth[..., ::-1]), "jpeg")
    assert np.abs(as_rgb8(jpeg).astype(int) - smooth).mean() < 8


@pytest.mark.parametrize("extension", [".jpg", ".png"])
@pytest.mark.parametrize("part", [0.01, 0.3, 0.6, 0.9])
def test_a_half_written_compressed_image_is_refused(extension, part):
    data = encoded(extension)
    with pytest.raises(InputError):
        decode_compressed(data[: max(4, int(len(data) * part))])


def test_a_compressed_header_that_claims_a_huge_image_is_refused_before_decoding():
    png = bytearray(encoded(".png"))
    png[16:24] = (100_000).to_bytes(4, "big") * 2
    with pytest.raises(InputError, match="100000 x 100000"):
        decode_compressed(bytes(png))


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"]))
def test_random_bytes_are_refused_and_never_crash(data, magic):
    with pytest.raises(InputError):
        decode_compressed(magic + data)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2000), st.binary(min_size=1, max_size=8), st.sampled_from([".jpg", ".png"]))
def test_a_damaged_compressed_image_is_decoded_or_refused(at, damage, extension):
    data = bytearray(encoded(extension))
    data[at % len(data) : at % len(data) + len(damage)] = damage
    try:
        pixels = decode_compressed(bytes(data))
    except InputError:
        return
    assert pixels.array.dtype in (np.uint8, np.uint16)


def test_each_bad_box_is_left_out_for_its_own_reason():
    boxes = np.array(
        [
            [16, 12, 8, 8],
            [np.nan, 12, 8, 8],
            [16, np.inf, 8, 8],
            [16, 12, -8, 8],
            [16, 12, 0, 8],
            [16, 12, 1e9, 8],
            [1e30, 12, 8, 8],
            [60, 12, 8, 8],
            [16, 12, 2, 2],
            [0, 12, 8, 8],
        ]
    )
    check = check_boxes(boxes, (24, 32), min_size=4)
    assert check.keep.tolist() == [True] + [False] * 8 + [True]
    assert check.reasons == {
        "box_not_finite": 2,
        "box_inverted": 2,
        "box_absurd": 2,
        "box_outside": 1,
        "box_too_small": 1,
    }
    np.testing.assert_allclose(check.boxes[9], [2, 12, 4, 8])  # clipped at the left edge


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(*[st.floats(width=64, allow_nan=True, allow_infinity=True)] * 4), min_size=0, max_size=5
    )
)
def test_any_box_is_either_counted_or_cropped(boxes):
    array = np.array(boxes, np.float64).reshape(-1, 4)
    check = check_boxes(array, (24, 32), min_size=2)
    assert check.keep.sum() + sum(check.reasons.values()) == len(boxes)
    crops = cut_crops(Pixels(gradient(), "rgb"), check.boxes[check.keep], 8, 0.1)
    assert crops.shape == (check.keep.sum(), 8, 8, 3)


def test_a_box_at_its_own_size_is_copied_exactly():
    rgb = gradient()
    crop = cut_crops(Pixels(rgb, "rgb"), np.array([[12, 10, 8, 8]]), 8, 0.0)[0]
    np.testing.assert_array_equal(crop, rgb[6:14, 8:16])


def test_the_margin_grows_the_box_on_every_side_and_repeats_the_edge():
    rgb = gradient()
    crop = cut_crops(Pixels(rgb, "rgb"), np.array([[4, 4, 8, 8]]), 12, 0.25)[0]
    np.testing.assert_array_equal(crop, np.pad(rgb[:10, :10], ((2, 0), (2, 0), (0, 0)), mode="edge"))


def test_a_large_box_is_averaged_rather_than_sampled():
    checker = np.indices((64, 64)).sum(axis=0) % 2 * 255
    crop = cut_crops(Pixels(checker.astype(np.uint8), "mono"), np.array([[32, 32, 64, 64]]), 8, 0.0)[0]
    assert np.abs(crop.astype(int) - 127).max() <= 2


def test_a_half_pixel_shift_of_the_box_shifts_the_crop_by_half_a_pixel():
    ramp = np.repeat(np.arange(0, 200, 4, dtype=np.uint8)[None], 20, axis=0)
    boxes = np.array([[20, 10, 8, 8], [20.5, 10, 8, 8]])
    first, second = cut_crops(Pixels(ramp, "mono"), boxes, 8, 0.0).astype(int)
    assert (second - first == 2).all()


def test_cropping_an_unchecked_nan_box_is_refused():
    with pytest.raises(InputError, match="check_boxes"):
        cut_crops(Pixels(gradient(), "rgb"), np.array([[np.nan, 1, 1, 1]]), 8, 0.0)
