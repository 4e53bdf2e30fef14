"""Boxes given in the pixels of a network's input, mapped to those of the camera's image."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.types.errors import InputError

# How the detector made its input of the image:
#   image: its boxes are in the image's pixels already;       stretch: resized to box_size, aspect or not;
#   letterbox: resized to fit into it, even margins around;   crop: resized to cover it, the middle cut out.
BOX_FRAMES = ("image", "stretch", "letterbox", "crop")


def to_image_pixels(
    bbox: np.ndarray, box_frame: str, box_size: tuple[float, float], image_size: tuple[float, float]
) -> np.ndarray:
    """The same boxes in the image's pixels.

    Args:
        bbox: x, y, theta, width, height in the pixels of `box_frame`.  [boxes, 5]
        box_size: width and height of the network's input; not looked at for `image`.
        image_size: width and height of the image.
    """
    if box_frame not in BOX_FRAMES:
        raise InputError(f"box_frame is '{box_frame}', choose one of {', '.join(BOX_FRAMES)}")
    bbox = np.asarray(bbox, np.float64).reshape(-1, 5)
    if box_frame == "image":
        return bbox
    box, image = np.array(box_size, np.float64), np.array(image_size, np.float64)
    if not (box.shape == image.shape == (2,) and (box > 0).all() and (image > 0).all()):
        raise InputError(
            f"box_frame '{box_frame}' needs box_size, the width and height of the network's input, "
            f"got {tuple(box_size)} for an image of {tuple(image_size)}"
        )
    scale = box / image  # network pixels per image pixel
    if box_frame == "letterbox":
        scale[:] = scale.min()
    elif box_frame == "crop":
        scale[:] = scale.max()
    margin = (box - image * scale) / 2  # negative where something was cut off
    turn = np.stack([np.cos(bbox[:, 2]), np.sin(bbox[:, 2])], axis=1)
    across = turn / scale  # the box's own axes in the image, for one network pixel
    down = turn[:, ::-1] * (-1, 1) / scale
    mapped = np.empty_like(bbox)
    mapped[:, :2] = (bbox[:, :2] - margin) / scale
    mapped[:, 2] = np.where(bbox[:, 2] == 0, 0.0, np.arctan2(across[:, 1], across[:, 0]))
    mapped[:, 3] = bbox[:, 3] * np.hypot(*across.T)
    mapped[:, 4] = bbox[:, 4] * np.hypot(*down.T)
    return mapped
