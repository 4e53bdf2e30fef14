"""Your own images: one folder a class, tracks by file name."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Literal

from lla_fusion_ros.datasets.images import IMAGE_EXTENSIONS, digest_tracks, read_image
from lla_fusion_ros.datasets.types import Frame, Track, TrackSet
from lla_fusion_ros.errors import DatasetError, InputError

Layout = Literal["auto", "tracks", "images"]
_TRACK_FRAME = re.compile(r"(?P<track>.+)_(?P<frame>\d{1,9})")


def load_folders(root: Path, layout: Layout = "auto", rate: float = 10.0) -> TrackSet:
    """`<class>/<track>_<frame>.<ext>` or `<class>/*.<ext>`; the folders are the classes, sorted by name.

    Args:
        layout: "tracks" insists on <track>_<frame>, "images" makes each image a track of its own, "auto"
            takes tracks where all names of a class folder have that form.
        rate: frames per second of the tracks.
    """
    if layout not in ("auto", "tracks", "images") or not rate > 0:
        raise InputError(f"layout='{layout}' must be auto, tracks or images, and rate={rate} > 0")
    folders = sorted(f for f in root.iterdir() if f.is_dir() and not f.name.startswith("."))
    if len(folders) < 2:
        raise DatasetError(
            f"folder '{root}' has {len(folders)} class folders; expected two or more, named after the "
            "classes, with images <track>_<frame>.<ext> or *.<ext> in them"
        )
    names = tuple(folder.name for folder in folders)
    tracks = [
        track for label, folder in enumerate(folders) for track in _load_class(folder, label, layout, rate)
    ]
    return TrackSet(root.name or "folders", names, tuple(tracks), digest_tracks(names, tracks))


def _load_class(folder: Path, label: int, layout: Layout, rate: float) -> list[Track]:
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGE_EXTENSIONS)
    if not paths:
        known = ", ".join(sorted(IMAGE_EXTENSIONS))
        raise DatasetError(f"class folder '{folder}' holds no images ({known})")
    names = {path: _TRACK_FRAME.fullmatch(path.stem) for path in paths}
    strange = [path for path, match in names.items() if match is None]
    if layout == "tracks" and strange:
        raise DatasetError(f"image '{strange[0]}' is not named <track>_<frame>{strange[0].suffix}")
    groups: dict[str, list[tuple[int, Path]]] = defaultdict(list)
    for path, match in names.items():
        if layout == "images" or strange or match is None:
            groups[path.name].append((0, path))
        else:
            groups[match["track"]].append((int(match["frame"]), path))
    return [
        Track(
            f"{folder.name}/{group}",
            label,
            tuple(_frame(path, index / rate) for index, path in sorted(members)),
        )
        for group, members in sorted(groups.items())
    ]


def _frame(path: Path, time: float) -> Frame:
    image = read_image(path)
    height, width = image.shape[:2]
    return Frame(image, (0.0, 0.0, float(width), float(height)), time=time)
