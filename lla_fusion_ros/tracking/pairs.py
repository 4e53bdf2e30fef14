"""Do two cameras' boxes show one object? What a pair of tracks tells at each moment, and the sum of it.

A box is a direction and an angular size. Were two boxes one object of size h metres, the direction in the
second camera would lie on the great circle from the first direction towards the first camera (*across* it: no
distance may remain), as far along it as the object is near (*along* it: 1/range = angular size / h, so the
unknown 1/h is one number for the whole track), and both boxes would have the same size in metres. Each
of the three is a Gaussian regression with an unknown offset, since errors of the calibration do not average
out. The sums below are all that the likelihood ratio of "one object" to "two objects" needs:

    across:  e = offset + noise      along:  y = offset + G / h + noise      size:  s = offset + noise
"""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.tracking.lens import Lens
from lla_fusion_ros.tracking.transforms import Pose

# Standard deviations of boxes.
PIXEL = 1.0  # pixels
SIDE = 0.06  # sides of the box
CUT = 0.5  # ... along a side that the image's edge cuts off
SIZE, SIZE_CUT, ASPECT = 0.06, 0.4, 0.3  # log size; of a cut one; per radian between the two views
# Offsets: of one object, and what they are of two. Radians; log size.
SAME = {"across": np.deg2rad(0.15), "along": np.deg2rad(0.15), "size": 0.06}
OTHER = {"across": 0.1, "along": 0.3, "size": 0.6}
# 1/h: mean and standard deviation, per metre
INVERSE_SIZE = (1.0, 1.0)
OTHER_INVERSE_SIZE = (0.0, 10.0)
SCATTER = 2.5  # times the usual variance over time from which on a pair loses
NEAREST, FARTHEST = 1.0, 300.0  # metres
FARTHEST_OFF = 5.0  # standard deviations at which a single box stops to count for more
TEMPER = 0.6  # consecutive boxes are not independent
MEASURES = 13
EDGE = 0.1  # of the image, where a camera may well miss what another sees


# What a box shows is a row of 16 numbers, in a frame common to all cameras: the origin of its camera, unit
# vectors towards the middle of the box and along the image's axes, the log of its angular size, and standard
# deviations, along both axes and of that log.
ORIGIN, RAY, RIGHT, DOWN = (np.s_[..., 3 * i : 3 * i + 3] for i in range(4))
SIZE_OF, NOISE_RIGHT, NOISE_DOWN, SIZE_NOISE = (np.s_[..., i] for i in range(12, 16))
COLUMNS = 16


def between(first: np.ndarray, second: np.ndarray, share: float) -> np.ndarray:
    """The same objects between two moments: 0 is the first, 1 the second; the noise is that of one box."""
    mixed = (1 - share) * first + share * second
    mixed[RAY] = _unit(mixed[RAY])
    mixed[:, 13:] = np.maximum(first[:, 13:], second[:, 13:])
    return mixed


def see(lens: Lens, pose: Pose, boxes: np.ndarray) -> np.ndarray:
    """What boxes (cx, cy, w, h in pixels) show, from a camera with this pose; nan where it cannot tell.

    [n, 4] -> [n, COLUMNS]
    """
    n = len(boxes)
    centre, half = boxes[:, :2], boxes[:, 2:] / 2
    across, along = half * (1.0, 0.0), half * (0.0, 1.0)
    edges = np.concatenate([centre - across, centre + across, centre - along, centre + along])
    left, right, top, bottom = (lens.rays(edges) @ pose.rotation.T).reshape(4, n, 3)
    wide, high = right - left, bottom - top
    sides = np.sqrt(np.stack([_dot(wide, wide), _dot(high, high)], axis=1))  # angles.  [n, 2]
    cut = (centre - half <= 1) | (centre + half >= np.array([lens.width, lens.height]) - 1)  # [n, 2]
    pixel = PIXEL / np.maximum(boxes[:, 2:], 1e-6)
    sights = np.empty((n, COLUMNS))
    sights[ORIGIN] = pose.place
    with np.errstate(divide="ignore", invalid="ignore"):
        sights[RAY] = _unit(left + right + top + bottom)
        sights[RIGHT], sights[DOWN] = wide / sides[:, :1], high / sides[:, 1:]
        sights[SIZE_OF] = np.log(sides[:, 0] * sides[:, 1]) / 2
    sights[:, 13:15] = sides * np.sqrt(pixel**2 + np.where(cut, CUT, SIDE) ** 2)
    sights[SIZE_NOISE] = np.where(cut.any(axis=1), SIZE_CUT, np.sqrt(SIZE**2 + (pixel**2).mean(axis=1)))
    return sights


def shown(lens: Lens, pose: Pose, points: np.ndarray) -> np.ndarray:
    """Which points lie well inside the image of a camera with this pose.  [n, 3] -> [n] bool"""
    share = lens.project((points - pose.place) @ pose.rotation) / (lens.width, lens.height)
    return np.asarray(np.abs(share - 0.5).max(axis=1) < 0.5 - EDGE)


def _dot(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.einsum("...i,...i", first, second)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.sqrt(_dot(vectors, vectors))[..., None]


def _cross(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """np.cross, quicker."""
    return first[..., [1, 2, 0]] * second[..., [2, 0, 1]] - first[..., [2, 0, 1]] * second[..., [1, 2, 0]]


def _variance(sights: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Of the middle of boxes, along a direction."""
    right, down = _dot(sights[RIGHT], direction), _dot(sights[DOWN], direction)
    return (right * sights[NOISE_RIGHT]) ** 2 + (down * sights[NOISE_DOWN]) ** 2


def evidence(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """What one moment adds to the sums of pairs.  2 x [..., COLUMNS] -> [MEASURES, ...]"""
    ray, other = first[RAY], second[RAY]
    base = first[ORIGIN] - second[ORIGIN]
    along_ray = _dot(base, ray)
    aside = base - along_ray[..., None] * ray
    offset = np.sqrt(_dot(aside, aside))
    small = offset < 1e-6
    axis = np.where(small[..., None], first[RIGHT], aside / np.where(small, 1.0, offset)[..., None])
    normal = _cross(ray, axis)  # the circle is that of `ray` and `axis`
    angle = np.arctan2(_dot(axis, other), _dot(ray, other))
    across = np.arcsin(np.clip(_dot(normal, other), -1, 1))
    over_axis = _variance(first, axis) + _variance(second, axis)
    over_normal = _variance(first, normal) + _variance(second, normal)

    # where on the circle it would be at 1/range, and its slope there: linear in 1/h about what was seen
    tangent = np.tan(np.clip(angle, -1.5, 1.5))
    below = offset - along_ray * tangent
    ahead_of = below > 1e-9
    inverse = np.where(ahead_of, tangent / np.where(ahead_of, below, 1.0), np.copysign(np.inf, tangent))
    inverse = np.clip(inverse, 1 / FARTHEST, 1 / NEAREST)
    ahead, over = 1 + along_ray * inverse, offset * inverse
    distance = ahead**2 + over**2
    slope = offset / distance
    along = angle - np.arctan2(over, ahead) + slope * inverse
    gain = np.exp(first[SIZE_OF]) * slope
    size = first[SIZE_OF] - second[SIZE_OF] - np.log(distance) / 2

    over_axis += (first[SIZE_NOISE] * slope * inverse) ** 2
    noise_size = first[SIZE_NOISE] ** 2 + second[SIZE_NOISE] ** 2 + (ASPECT * angle) ** 2
    across = _bounded(across, over_normal, OTHER["across"])
    size = _bounded(size, noise_size, OTHER["size"])
    a, b, c = TEMPER / over_normal, TEMPER / over_axis, TEMPER / noise_size
    ae, bg, by, cs = a * across, b * gain, b * along, c * size
    count = np.full_like(a, TEMPER)
    return np.stack(
        [a, ae, ae * across, b, bg, bg * gain, by, by * gain, by * along, c, cs, cs * size, count]
    )


def _bounded(value: np.ndarray, variance: np.ndarray, other: float) -> np.ndarray:
    """A single box that is far off must not count for ever."""
    most = FARTHEST_OFF * np.sqrt(variance + other**2)
    return np.clip(value, -most, most)


def log_ratio(sums: np.ndarray) -> np.ndarray:
    """ln of the likelihood of one object over that of two, given their sums.  [MEASURES, ...] -> [...]

    Both explain the values over time by offsets and a size; for one object these are small and usual. What
    varies more than boxes do is no one object's.
    """
    a, ae, aee, b, bg, bgg, by, bgy, byy, c, cs, css, n = sums
    result = np.zeros(a.shape)
    rest = np.zeros(a.shape)
    for sign, offsets, inverse in ((1, SAME, INVERSE_SIZE), (-1, OTHER, OTHER_INVERSE_SIZE)):
        across, left_across = _fit(a, ae, aee, offsets["across"])
        size, left_size = _fit(c, cs, css, offsets["size"])
        along, left_along = _fit_line((b, bg, bgg, by, bgy, byy), offsets["along"], *inverse)
        result += sign * (across + size + along)
        if sign == 1:
            rest = left_across + left_size + left_along
    return result - np.maximum(0.0, rest - SCATTER * 3 * n) / 2


def _fit(weight: np.ndarray, first: np.ndarray, second: np.ndarray, spread: float) -> tuple[np.ndarray, ...]:
    """ln of the likelihood of noisy values about an offset ~ N(0, spread^2), and the squares left over."""
    left = second - first**2 / (weight + spread**-2)
    return -left / 2 - np.log1p(spread**2 * weight) / 2, left


def _fit_line(
    sums: tuple[np.ndarray, ...], spread: float, mean: float, width: float
) -> tuple[np.ndarray, ...]:
    """The same about offset + gain / h, with 1/h ~ N(mean, width^2)."""
    b, bg, bgg, by, bgy, byy = sums
    y, gy = by - mean * bg, bgy - mean * bgg
    yy = byy - 2 * mean * bgy + mean**2 * bgg
    p, r = b + spread**-2, bgg + width**-2
    determinant = p * r - bg**2
    left = yy - (r * y**2 - 2 * bg * y * gy + p * gy**2) / determinant
    return -left / 2 - np.log(determinant * (spread * width) ** 2) / 2, left
