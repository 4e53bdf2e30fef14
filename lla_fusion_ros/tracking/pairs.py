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

from dataclasses import dataclass, fields

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
    """Boxes of cameras in a frame common to all of them.

    Attributes:
        origin: of the camera.                                             [n, 3]
        ray: unit vector towards the middle of the box.                    [n, 3]
        right, down: unit vectors of the image's axes, across the ray.     [n, 3]
        size: log of the angular size.                                     [n]
        noise: standard deviations along `right` and `down`.               [n, 2]
        size_noise: of `size`.                                             [n]
    """

    origin: np.ndarray
    ray: np.ndarray
    right: np.ndarray
    down: np.ndarray
    size: np.ndarray
    noise: np.ndarray
    size_noise: np.ndarray

    def __len__(self) -> int:
        return len(self.size)

    def take(self, rows: np.ndarray) -> Sights:
        return Sights(*(getattr(self, each.name)[rows] for each in fields(self)))

    @staticmethod
    def concatenate(parts: list[Sights]) -> Sights:
        return Sights(*(np.concatenate([getattr(p, each.name) for p in parts]) for each in fields(Sights)))

    def towards(self, other: Sights, share: float) -> Sights:
        """The same objects between two moments: 0 is this one, 1 the other; the noise is of the nearer."""
        mixed = [(1 - share) * a + share * b for a, b in ((self.ray, other.ray), (self.size, other.size))]
        near = self if share < 0.5 else other
        ray = mixed[0] / np.linalg.norm(mixed[0], axis=1, keepdims=True)
        noise = np.maximum(self.noise, other.noise), np.maximum(self.size_noise, other.size_noise)
        return Sights(near.origin, ray, near.right, near.down, mixed[1], *noise)


def see(lens: Lens, pose: Pose, boxes: np.ndarray) -> Sights:
    """What boxes (cx, cy, w, h in pixels) show, from a camera with this pose; nan where it cannot tell."""
    n = len(boxes)
    centre, half = boxes[:, :2], boxes[:, 2:] / 2
    across = np.zeros((n, 2)), np.zeros((n, 2))
    across[0][:, 0], across[1][:, 1] = half[:, 0], half[:, 1]
    edges = np.concatenate([centre - across[0], centre + across[0], centre - across[1], centre + across[1]])
    left, right, top, bottom = lens.rays(edges).reshape(4, n, 3)
    width, height = np.linalg.norm(right - left, axis=1), np.linalg.norm(bottom - top, axis=1)
    ray = _unit(left + right + top + bottom)
    low, high = centre - half, centre + half
    cut = (low <= 1) | (high >= np.array([lens.width, lens.height]) - 1)  # [n, 2]
    pixel = PIXEL / np.maximum(2 * half, 1e-6)
    share = np.sqrt(pixel**2 + np.where(cut, CUT, SIDE) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.log(width * height) / 2
    return Sights(
        np.broadcast_to(pose.place, (n, 3)),
        ray @ pose.rotation.T,
        _unit(right - left) @ pose.rotation.T,
        _unit(bottom - top) @ pose.rotation.T,
        size,
        share * np.stack([width, height], axis=1),
        np.where(cut.any(axis=1), SIZE_CUT, np.sqrt(SIZE**2 + (pixel**2).mean(axis=1))),
    )


def _unit(vectors: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def evidence(first: Sights, second: Sights) -> np.ndarray:
    """What one moment adds to the sums of all pairs.  [first, second, MEASURES]"""
    base = first.origin[:, None] - second.origin[None]  # [n, m, 3]
    ray = first.ray[:, None]
    along_ray = (base * ray).sum(-1)
    aside = base - along_ray[..., None] * ray
    offset = np.sqrt((aside**2).sum(-1))
    small = offset < 1e-6
    axis = np.where(small[..., None], first.right[:, None], aside / np.where(small, 1.0, offset)[..., None])
    normal = np.cross(np.broadcast_to(ray, axis.shape), axis)
    other = second.ray[None]
    x, y, z = first.ray @ second.ray.T, (axis * other).sum(-1), (normal * other).sum(-1)
    angle = np.arctan2(y, x)
    across = np.arcsin(np.clip(z, -1, 1))

    # where on the circle it would be at 1/range, and its slope there: linear in 1/h about what was seen
    tangent = np.tan(np.clip(angle, -1.5, 1.5))
    below = offset - along_ray * tangent
    inverse = np.where(
        below > 1e-9, tangent / np.where(below > 1e-9, below, 1.0), np.inf * np.sign(tangent + 1e-12)
    )
    inverse = np.clip(inverse, 1 / FARTHEST, 1 / NEAREST)
    ahead, over = 1 + along_ray * inverse, offset * inverse
    distance = ahead**2 + over**2
    slope = offset / distance
    along = angle - np.arctan2(over, ahead) + slope * inverse
    gain = np.exp(first.size)[:, None] * slope
    size = first.size[:, None] - second.size[None] - np.log(distance) / 2

    def variance(direction: np.ndarray) -> np.ndarray:
        own = ((first.right[:, None] * direction).sum(-1) * first.noise[:, None, 0]) ** 2
        own += ((first.down[:, None] * direction).sum(-1) * first.noise[:, None, 1]) ** 2
        own += ((second.right[None] * direction).sum(-1) * second.noise[None, :, 0]) ** 2
        return own + ((second.down[None] * direction).sum(-1) * second.noise[None, :, 1]) ** 2

    noise = variance(normal), variance(axis) + (first.size_noise[:, None] * slope * inverse) ** 2
    noise_size = first.size_noise[:, None] ** 2 + second.size_noise[None] ** 2 + (ASPECT * angle) ** 2
    across = _bounded(across, noise[0], OTHER["across"])
    size = _bounded(size, noise_size, OTHER["size"])
    a, b, c = 1 / noise[0], 1 / noise[1], 1 / noise_size
    one = np.ones_like(a)
    sums = [a, a * across, a * across**2, b, b * gain, b * gain**2, b * along, b * gain * along, b * along**2]
    sums += [c, c * size, c * size**2, one]
    return TEMPER * np.stack(sums, axis=-1)


def _bounded(value: np.ndarray, variance: np.ndarray, other: float) -> np.ndarray:
    """A single box that is far off must not count for ever."""
    most = FARTHEST_OFF * np.sqrt(variance + other**2)
    return np.clip(value, -most, most)


def log_ratio(sums: np.ndarray) -> np.ndarray:
    """ln of the likelihood of one object over that of two, given their sums.  [..., MEASURES] -> [...]

    Both explain the values over time by offsets and a size; for one object these are small and usual. What
    varies more than boxes do is no one object's.
    """
    a, ae, aee, b, bg, bgg, by, bgy, byy, c, cs, css, n = np.moveaxis(sums, -1, 0)
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
