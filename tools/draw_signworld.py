#!/usr/bin/env python3
"""Draw the pictures of docs/signworld.md: moments of the demo's drive, and all signs.

Example:
    python tools/draw_signworld.py --to docs/images
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import cv2
import numpy as np

from lla_fusion_ros.signworld import CLASS_NAMES, OUTSIDE_KINDS, demo_drive
from lla_fusion_ros.signworld.scene import face_of

MOMENTS = ((5, 0), (60, 1), (115, 0), (170, 0), (210, 0), (248, 1))  # step and camera
COLUMNS = 9
CELL = 132


def moments() -> np.ndarray:
    """Six frames of the demo, two rows of three."""
    drive = demo_drive()
    frames = [drive.frame(step, camera).image for step, camera in MOMENTS]
    rows = [np.concatenate(frames[start : start + 3], axis=1) for start in (0, 3)]
    picture = np.concatenate(rows)
    return cv2.resize(picture, None, fx=0.6, fy=0.6, interpolation=cv2.INTER_AREA)


def faces() -> np.ndarray:
    """All classes, and below them the objects that belong to none."""
    rows = -(-len(CLASS_NAMES) // COLUMNS)
    sheet = np.full(((rows + 1) * CELL, COLUMNS * CELL, 3), 232, np.uint8)
    cells = [(name, divmod(i, COLUMNS)) for i, name in enumerate(CLASS_NAMES)]
    cells += [(name, (rows, i)) for i, name in enumerate(OUTSIDE_KINDS)]
    for name, (row, column) in cells:
        face = cv2.resize(face_of(name), (96, 96), interpolation=cv2.INTER_AREA)
        y, x = row * CELL + 8, column * CELL + 18
        place = sheet[y : y + 96, x : x + 96]
        place[:] = face[..., :3] + place * (1 - face[..., 3:] / 255.0)
        (width, _), _ = cv2.getTextSize(name, cv2.FONT_HERSHEY_SIMPLEX, 0.4, 1)
        origin = (column * CELL + (CELL - width) // 2, row * CELL + 120)
        cv2.putText(sheet, name, origin, cv2.FONT_HERSHEY_SIMPLEX, 0.4, (40, 40, 40), 1, cv2.LINE_AA)
    return sheet


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="where the pictures go")
    folder = parser.parse_args().to
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture, options in (
        ("signworld.jpg", moments(), [cv2.IMWRITE_JPEG_QUALITY, 88]),
        ("signworld_signs.png", faces(), [cv2.IMWRITE_PNG_COMPRESSION, 9]),
    ):
        cv2.imwrite(str(folder / name), picture[..., ::-1], options)
        print(folder / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
