"""GTSRB, the German Traffic Sign Recognition Benchmark, in its official layout."""

from __future__ import annotations

from pathlib import Path

from lla_fusion_ros.lab.datasets.annotations import class_folders, read_tracks
from lla_fusion_ros.lab.datasets.images import digest_tracks
from lla_fusion_ros.lab.datasets.mirror import mirror_images
from lla_fusion_ros.types.errors import DatasetError
from lla_fusion_ros.types.track_set import Track, TrackSet

# In ClassId order.
CLASS_NAMES = (
    "speed limit 20",
    "speed limit 30",
    "speed limit 50",
    "speed limit 60",
    "speed limit 70",
    "speed limit 80",
    "end of speed limit 80",
    "speed limit 100",
    "speed limit 120",
    "no overtaking",
    "no overtaking by lorries",
    "priority at next crossing",
    "priority road",
    "give way",
    "stop",
    "no vehicles",
    "no lorries",
    "no entry",
    "danger",
    "bend to the left",
    "bend to the right",
    "double bend",
    "bumpy road",
    "slippery road",
    "road narrows on the right",
    "road works",
    "traffic signals ahead",
    "pedestrians",
    "children",
    "bicycles",
    "ice or snow",
    "wild animals",
    "end of all limits",
    "turn right ahead",
    "turn left ahead",
    "ahead only",
    "ahead or right",
    "ahead or left",
    "keep right",
    "keep left",
    "roundabout",
    "end of no overtaking",
    "end of no overtaking by lorries",
)

MIRRORED = mirror_images(
    len(CLASS_NAMES),
    symmetric=(11, 12, 13, 15, 17, 18, 22, 26, 30, 35),
    pairs=((19, 20), (33, 34), (36, 37), (38, 39)),
)

# Kept out of training where out-of-distribution warnings are measured (`train --holdout`).
HELD_OUT = (6, 12, 13, 15, 17, 32, 38, 40)


def load_gtsrb(root: Path, partial: bool = False) -> TrackSet:
    """All training tracks: `root` is the folder GTSRB, or any folder between it and the class folders.

    Args:
        partial: some class folders may be missing, as in a part of the set; classes keep their numbers.
    """
    images = _images_folder(root)
    tracks: list[Track] = []
    for class_id, folder in class_folders(images, len(CLASS_NAMES), "GTSRB", complete=not partial):
        tracks.extend(read_tracks(folder, class_id))
    return TrackSet("gtsrb", CLASS_NAMES, tuple(tracks), digest_tracks(CLASS_NAMES, tracks), MIRRORED)


def _images_folder(root: Path) -> Path:
    for inside in ("Final_Training/Images", "GTSRB/Final_Training/Images", "Images", "."):
        if any((root / inside / f"{number:05d}").is_dir() for number in range(len(CLASS_NAMES))):
            return root / inside
    raise DatasetError(
        f"no GTSRB in '{root}': expected Final_Training/Images/00000 to 00042, each with GT-<class>.csv and "
        "<track>_<frame>.ppm (docs/train.md says where to get it)"
    )
