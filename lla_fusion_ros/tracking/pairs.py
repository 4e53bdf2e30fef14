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

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Sights:
    """Boxes of cameras in a frame common to all of them: the columns of one array.

    Attributes:
        origin: of the camera.                                             [n, 3]
        ray: unit vector towards the middle of the box.                    [n, 3]
        right, down: unit vectors of the image's axes, across the ray.     [n, 3]
        size: log of the angular size.                                     [n]
        noise: standard deviations along `right` and `down`.               [n, 2]
        size_noise: of `size`.                                             [n]
    """

    columns: np.ndarray  # [n, 16]

    def __len__(self) -> int:
        return len(self.columns)

    origin = property(lambda self: self.columns[:, 0:3])
    ray = property(lambda self: self.columns[:, 3:6])
    right = property(lambda self: self.columns[:, 6:9])
    down = property(lambda self: self.columns[:, 9:12])
    size = property(lambda self: self.columns[:, 12])
    noise = property(lambda self: self.columns[:, 13:15])
    size_noise = property(lambda self: self.columns[:, 15])

    def take(self, rows: np.ndarray) -> Sights:
        return Sights(self.columns[rows])

    @staticmethod
    def concatenate(parts: list[Sights]) -> Sights:
        return Sights(np.concatenate([part.columns for part in parts]))

    def towards(self, other: Sights, share: float) -> Sights:
        """The same objects between two moments: 0 is this one, 1 the other; the noise is that of one box."""
        mixed = (1 - share) * self.columns + share * other.columns
        mixed[:, 3:6] = _unit(mixed[:, 3:6])
        mixed[:, 13:] = np.maximum(self.columns[:, 13:], other.columns[:, 13:])
        return Sights(mixed)


def see(lens: Lens, pose: Pose, boxes: np.ndarray) -> Sights:
    """What boxes (cx, cy, w, h in pixels) show, from a camera with this pose; nan where it cannot tell."""
    n = len(boxes)
    centre, half = boxes[:, :2], boxes[:, 2:] / 2
    across, along = half * (1.0, 0.0), half * (0.0, 1.0)
    edges = np.concatenate([centre - across, centre + across, centre - along, centre + along])
    left, right, top, bottom = (lens.rays(edges) @ pose.rotation.T).reshape(4, n, 3)
    wide, high = right - left, bottom - top
    sides = np.sqrt(np.stack([_dot(wide, wide), _dot(high, high)], axis=1))  # angles.  [n, 2]
    cut = (centre - half <= 1) | (centre + half >= np.array([lens.width, lens.height]) - 1)  # [n, 2]
    pixel = PIXEL / np.maximum(boxes[:, 2:], 1e-6)
    columns = np.empty((n, 16))
    columns[:, 0:3] = pose.place
    columns[:, 3:6] = _unit(left + right + top + bottom)
    with np.errstate(divide="ignore", invalid="ignore"):
        columns[:, 6:9], columns[:, 9:12] = wide / sides[:, :1], high / sides[:, 1:]
        columns[:, 12] = np.log(sides[:, 0] * sides[:, 1]) / 2
    columns[:, 13:15] = sides * np.sqrt(pixel**2 + np.where(cut, CUT, SIDE) ** 2)
    columns[:, 15] = np.where(cut.any(axis=1), SIZE_CUT, np.sqrt(SIZE**2 + (pixel**2).mean(axis=1)))
    return Sights(columns)


def _dot(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.einsum("...i,...i", first, second)


def _unit(vectors: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return vectors / np.sqrt(_dot(vectors, vectors))[..., None]


def evidence(first: Sights, second: Sights) -> np.ndarray:
    """What one moment adds to the sums of all pairs.  [MEASURES, first, second]"""
    ray = first.ray
    base = first.origin[:, None] - second.origin  # [n, m, 3]
    along_ray = np.einsum("nmi,ni->nm", base, ray)
    aside = base - along_ray[..., None] * ray[:, None]
    offset = np.sqrt(_dot(aside, aside))
    small = offset < 1e-6
    if small.any():
        aside[small] = first.right[np.nonzero(small)[0]]
    axis = aside / np.where(small, 1.0, offset)[..., None]  # along the circle
    # the second ray and the noise of boxes, along and across the circle
    turned = np.cross(second.ray[None], ray[:, None])  # [n, m, 3]
    x = ray @ second.ray.T
    angle = np.arctan2(np.einsum("nmi,mi->nm", axis, second.ray), x)
    across = np.arcsin(np.clip(_dot(axis, turned), -1, 1))
    normal_first = np.stack([np.cross(first.right, ray), np.cross(first.down, ray)], axis=1)  # [n, 2, 3]
    edges_first = np.stack([first.right, first.down], axis=1)
    edges_second = np.stack([second.right, second.down], axis=1)
    normal_second = np.cross(edges_second[None], ray[:, None, None])  # [n, m, 2, 3]
    noise_first, noise_second = first.noise**2, second.noise**2
    over_axis = np.einsum("nmk,nk->nm", np.einsum("nmi,nki->nmk", axis, edges_first) ** 2, noise_first)
    over_axis += np.einsum("nmk,mk->nm", np.einsum("nmi,mki->nmk", axis, edges_second) ** 2, noise_second)
    over_normal = np.einsum("nmk,nk->nm", np.einsum("nmi,nki->nmk", axis, normal_first) ** 2, noise_first)
    over_normal += np.einsum("nmk,mk->nm", np.einsum("nmi,nmki->nmk", axis, normal_second) ** 2, noise_second)

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
    gain = np.exp(first.size)[:, None] * slope
    size = first.size[:, None] - second.size - np.log(distance) / 2

    over_axis += (first.size_noise[:, None] * slope * inverse) ** 2
    noise_size = first.size_noise[:, None] ** 2 + second.size_noise**2 + (ASPECT * angle) ** 2
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
