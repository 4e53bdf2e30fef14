"""BelgiumTSC: Belgian signs, each photographed by several cameras of one van."""

from __future__ import annotations

from pathlib import Path

from lla_fusion_ros.lab.datasets.annotations import class_folders, read_tracks
from lla_fusion_ros.lab.datasets.images import digest_tracks
from lla_fusion_ros.lab.datasets.mirror import mirror_images
from lla_fusion_ros.lab.datasets.parts import Part, parts_of
from lla_fusion_ros.types.errors import DatasetError
from lla_fusion_ros.types.track_set import Track, TrackSet

# In the order of the class folders; the data set itself only numbers them.
CLASS_NAMES = (
    "uneven road",
    "speed bump ahead",
    "slippery road",
    "bend to the left",
    "bend to the right",
    "double bend, first left",
    "double bend, first right",
    "children",
    "bicycles",
    "cattle",
    "road works",
    "traffic signals ahead",
    "railway crossing with gates",
    "danger",
    "road narrows",
    "road narrows on the left",
    "road narrows on the right",
    "priority at next crossing",
    "crossing, give way to the right",
    "give way",
    "give way to oncoming traffic",
    "stop",
    "no entry",
    "no bicycles",
    "weight limit",
    "no lorries",
    "width limit",
    "height limit",
    "no vehicles",
    "no left turn",
    "no right turn",
    "no overtaking",
    "speed limit",
    "path for pedestrians and bicycles",
    "ahead only",
    "turn left or right",
    "ahead or right",
    "roundabout",
    "bicycle path",
    "divided path for bicycles and pedestrians",
    "no parking",
    "no stopping",
    "no parking from 1st to 15th",
    "no parking from 16th to 31st",
    "priority over oncoming traffic",
    "parking",
    "parking for disabled people",
    "parking for cars",
    "parking for lorries",
    "parking for coaches",
    "parking on the verge",
    "residential zone",
    "end of residential zone",
    "one way",
    "dead end",
    "end of works",
    "pedestrian crossing",
    "bicycle crossing",
    "parking this way",
    "speed bump",
    "end of priority road",
    "priority road",
)

# "turn left or right" is one class for both; the bar of "no left turn" stands the wrong way in a mirror.
MIRRORED = mirror_images(
    len(CLASS_NAMES),
    symmetric=(0, 1, 11, 12, 13, 14, 17, 18, 19, 22, 28, 34, 35, 41, 53, 54, 59, 61),
    pairs=((3, 4), (5, 6), (15, 16)),
)

_FOLDERS = {"train": "Training", "test": "Testing"}


def load_belgium(root: Path, part: Part = "all", partial: bool = False) -> TrackSet:
    """A track is one physical sign at one moment; the camera index of a frame is the view.

    Args:
        partial: some class folders of Training, or one of the two parts, may be missing.
    """
    base = root / "BelgiumTSC" if (root / "BelgiumTSC").is_dir() else root
    tracks: list[Track] = []
    present = [wanted for wanted in parts_of(part) if (base / _FOLDERS[wanted]).is_dir()]
    for wanted in present if partial and present else parts_of(part):
        name = _FOLDERS[wanted]
        if wanted not in present:
            raise DatasetError(
                f"no BelgiumTSC in '{root}': expected {name}/00000 to {name}/00061, each with GT-<class>.csv "
                "and <sign>_<view>.ppm (docs/train.md says where to get it); the options part=train and "
                "part=test ask for one of the two folders only"
            )
        what = f"BelgiumTSC {name}"
        # Also the official Testing lacks some classes; Training has all.
        complete = wanted == "train" and not partial
        folders = class_folders(base / name, len(CLASS_NAMES), what, complete)
        for class_id, folder in folders:
            tracks.extend(read_tracks(folder, class_id, prefix=f"{name}/", part=wanted, cameras=True))
    return TrackSet("belgiumtsc", CLASS_NAMES, tuple(tracks), digest_tracks(CLASS_NAMES, tracks), MIRRORED)
