"""What a crop tells about the picture, whatever it shows: light, contrast, sharpness, colour, focus."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.types.views import QUALITIES

_LUMA = np.array([0.299, 0.587, 0.114], np.float32)
_BRIGHT, _BLACK = 250, 5
_LEAST_ENERGY = 0.05  # of a picture in one colour, rounded to whole numbers
AT_ONCE = 2**18  # pixels: what is computed of them stays near the cache


def crop_quality(crops: np.ndarray) -> np.ndarray:
    """The numbers of QUALITIES for each crop.  [crops, side, side, 3] uint8 RGB -> [crops, qualities] float32

    brightness, contrast: mean and spread of the light.
    sharpness: how much neighbours differ, in units of the contrast; little in blurred and magnified crops.
    grain: how much pixels differ from the mean of their neighbours, the same way; noise and compression.
    colour, colour_sharpness: spread and steepness of what is not grey.
    clipped, black: shares of pixels at the ends of the range.
    focus: how much steeper the picture is than at half its resolution; little where the lens is out of focus,
        whatever the contrast.
    """
    step = max(AT_ONCE // max(crops.shape[1] * crops.shape[2], 1), 1)
    parts = [_quality(crops[at : at + step]) for at in range(0, len(crops), step)]
    return np.concatenate(parts) if parts else np.zeros((0, len(QUALITIES)), np.float32)


def _quality(crops: np.ndarray) -> np.ndarray:
    pixels = crops.astype(np.float32)
    luma = pixels @ _LUMA  # [n, side, side]
    colour = (pixels[..., 0] - luma) + (luma - pixels[..., 2])
    brightest = np.maximum(
        np.maximum(crops[..., 0], crops[..., 1]), crops[..., 2]
    )  # max(axis=3) is far slower
    contrast, hue = luma.std(axis=(1, 2)) + 1.0, colour.std(axis=(1, 2)) + 1.0
    return np.stack(
        [
            np.log(luma.mean(axis=(1, 2)) + 1.0),
            np.log(contrast),
            np.log(_steepness(luma) / contrast + 1e-3),
            np.log(_grain(luma) / contrast + 1e-3),
            np.log(hue),
            np.log(_steepness(colour) / hue + 1e-3),
            (brightest >= _BRIGHT).mean(axis=(1, 2)),
            (brightest <= _BLACK).mean(axis=(1, 2)),
            np.log(_energy(luma) + _LEAST_ENERGY) - np.log(_energy(_halved(luma)) + _LEAST_ENERGY),
        ],
        axis=1,
    ).astype(np.float32)


def _steepness(plane: np.ndarray) -> np.ndarray:
    """Mean difference of neighbours.  [n, side, side] -> [n]"""
    across, down = np.abs(np.diff(plane, axis=2)), np.abs(np.diff(plane, axis=1))
    return (across.mean(axis=(1, 2)) + down.mean(axis=(1, 2))) / 2


def _energy(plane: np.ndarray) -> np.ndarray:
    """Mean squared difference of neighbours.  [n, height, width] -> [n]"""
    across, down = np.diff(plane, axis=2), np.diff(plane, axis=1)
    return ((across**2).mean(axis=(1, 2)) + (down**2).mean(axis=(1, 2))) / 2


def _halved(plane: np.ndarray) -> np.ndarray:
    """Means of two by two pixels.  [n, side, side] -> [n, side // 2, side // 2]"""
    even = plane[:, : plane.shape[1] // 2 * 2, : plane.shape[2] // 2 * 2]
    return (even[:, ::2, ::2] + even[:, 1::2, ::2] + even[:, ::2, 1::2] + even[:, 1::2, 1::2]) / 4


def _grain(plane: np.ndarray) -> np.ndarray:
    """Mean distance of a pixel from the mean of its four neighbours.  [n, side, side] -> [n]"""
    middle = plane[:, 1:-1, 1:-1]
    around = plane[:, :-2, 1:-1] + plane[:, 2:, 1:-1] + plane[:, 1:-1, :-2] + plane[:, 1:-1, 2:]
    return np.abs(middle - around / 4).mean(axis=(1, 2))
