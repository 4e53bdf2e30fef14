"""Where signs stand: beside the road, facing the traffic, more on the right than on the left."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.signworld.outside import OUTSIDE_KINDS
from lla_fusion_ros.signworld.scene import RoadsideObject
from lla_fusion_ros.signworld.signs import CLASS_NAMES


def place_object(
    name: str, id: str, z: float, rng: np.random.Generator, right: float = 0.7
) -> RoadsideObject:
    """One object at z, the rest at random; `right` is the chance that it stands on the right."""
    side = 1 if rng.random() < right else -1
    return RoadsideObject(
        id=id,
        name=name,
        position=(side * rng.uniform(4.7, 6.2), rng.uniform(2.1, 2.8), z),
        side=rng.uniform(0.9, 1.15),
        yaw=rng.uniform(-12, 12),
        fade=rng.uniform(0.86, 1.0),
    )


def place_objects(stop: float, outside_share: float, rng: np.random.Generator) -> tuple[RoadsideObject, ...]:
    """Objects up to z = `stop`, 7 to 14 metres apart, every class about equally often."""
    places = []
    z = 14.0
    while z < stop:
        places.append(z)
        z += rng.uniform(7.0, 14.0)
    classes = [CLASS_NAMES[i % len(CLASS_NAMES)] for i in range(len(places))]
    rng.shuffle(classes)
    names = [str(rng.choice(OUTSIDE_KINDS)) if rng.random() < outside_share else name for name in classes]
    return tuple(
        place_object(name, f"{number:03d}", z, rng)
        for number, (name, z) in enumerate(zip(names, places, strict=True), start=1)
    )
