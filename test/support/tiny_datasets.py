"""Tiny data sets written to a folder, in the layouts of the real ones."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np

from lla_fusion_ros.types.track_set import Frame, Track, TrackSet


def write_ppm(path: Path, image: np.ndarray) -> None:
    path.write_bytes(b"P6\n%d %d\n255\n" % (image.shape[1], image.shape[0]) + image.tobytes())


def write_sign_class(folder: Path, class_id: int, groups: int, images: int, seed: int = 0) -> None:
    """A class folder of GTSRB or BelgiumTSC: `groups` signs of `images` images, 12 x 10 pixels."""
    rng = np.random.default_rng([seed, class_id])
    folder.mkdir(parents=True)
    lines = ["Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId"]
    for group in range(groups):
        for index in range(images):
            name = f"{group:05d}_{index:05d}.ppm"
            write_ppm(folder / name, rng.integers(0, 256, (10, 12, 3), dtype=np.uint8))
            lines.append(f"{name};12;10;2;1;10;9;{class_id}")
    (folder / f"GT-{folder.name}.csv").write_text("\n".join(lines) + "\n")


def write_gtsrb(root: Path, tracks: int = 1, frames: int = 2) -> Path:
    """All 43 classes; returns the folder of the class folders."""
    images = root / "Final_Training" / "Images"
    for class_id in range(43):
        write_sign_class(images / f"{class_id:05d}", class_id, tracks, frames)
    return images


def idx_bytes(array: np.ndarray) -> bytes:
    header = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


def write_mnist(root: Path, count: int = 6, zipped: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Four IDX files; returns images and labels of the training part."""
    root.mkdir(parents=True, exist_ok=True)
    made = {}
    for seed, prefix in enumerate(("train", "t10k")):
        rng = np.random.default_rng(seed)
        images, labels = rng.integers(0, 256, (count, 28, 28)), np.arange(count) % 10
        made[prefix] = (images.astype(np.uint8), labels)
        for name, array in ((f"{prefix}-images-idx3-ubyte", images), (f"{prefix}-labels-idx1-ubyte", labels)):
            data = idx_bytes(array)
            if zipped:
                (root / f"{name}.gz").write_bytes(gzip.compress(data))
            else:
                (root / name).write_bytes(data)
    return made["train"]


def make_trackset(
    classes: int = 3, tracks: int = 4, frames: int = 5, side: int = 24, seed: int = 0
) -> TrackSet:
    """Smooth random images, so that moving or blurring them changes them only a little."""
    rng = np.random.default_rng(seed)
    made = []
    for label in range(classes):
        for number in range(tracks):
            coarse = rng.integers(30, 226, (4, 4, 3)).repeat(side // 4, axis=0).repeat(side // 4, axis=1)
            image = coarse.astype(np.uint8)
            box = (side * 0.25, side * 0.25, side * 0.75, side * 0.75)
            shots = tuple(Frame(image, box, camera=step % 2, time=step / 10) for step in range(frames))
            made.append(Track(f"{label}/{number}", label, shots))
    return TrackSet("tiny", tuple(f"class {label}" for label in range(classes)), tuple(made), "0" * 64)
