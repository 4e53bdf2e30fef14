"""Your own images: one folder a class, tracks by file name; or any folders and a file that lists them."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from lla_fusion_ros.lab.datasets.images import IMAGE_EXTENSIONS, TracksDigest, read_image, shrunk
from lla_fusion_ros.types.errors import DatasetError, InputError
from lla_fusion_ros.types.track_set import Frame, Track, TrackSet

Layout = Literal["auto", "tracks", "images"]
LAYOUTS = ("auto", "tracks", "images")
_TRACK_FRAME = re.compile(r"(?P<track>.+)_(?P<frame>\d{1,9})")
_NAMED = 10  # files in a complaint about names
_SHARPER = 2  # sides of a crop that the side of a kept image has: what is left suits every crop cut from it

LIST = "tracks.csv"  # in the root: columns file, class, track, frame, and any others

Group = tuple[str, int, list[tuple[int, Path]]]  # track, label, its images in order


def load_folders(
    root: Path,
    layout: Layout = "auto",
    rate: float = 10.0,
    skip_bad: bool = False,
    crop_size: int = 128,
    split_by: str = "",
    rare: int = 0,
) -> TrackSet:
    """`<class>/<track>_<frame>.<ext>` or `<class>/*.<ext>`; the folders are the classes, sorted by name.

    A file `tracks.csv` in the root says instead which image (column file) shows what (class, track, frame).

    Args:
        layout: "tracks" insists on <track>_<frame>, "images" makes each image a track of its own; "auto"
            takes tracks where all names have that form, images where none has, and refuses a mixture: taken
            as single images, frames of one object would stand in training and in test.
        rate: frames per second of the tracks.
        skip_bad: leave out images that cannot be read, in place of refusing them all together.
        crop_size: side of the crops that will be cut. An image is shrunk to (2 crop_size)^2 pixels as soon as
            it is read; the digest is that of the files' own pixels.
        split_by: a column of tracks.csv, such as the site: whatever shares its value stays on one side of a
            split.
        rare: classes of fewer tracks are no classes but the outside world.
    """
    if layout not in LAYOUTS or not rate > 0:
        raise InputError(f"layout='{layout}' must be auto, tracks or images, and rate={rate} > 0")
    if (root / LIST).is_file():
        names, groups, parts = _listed(root, split_by)
    elif split_by:
        raise DatasetError(
            f"split_by={split_by} needs '{root / LIST}' with the columns file, class, track, frame"
        )
    else:
        names, groups = _from_names(root, layout)
        parts = {}
    if rare:
        tracks_of = Counter(label for _, label, _ in groups)
        kept = [label for label in range(len(names)) if tracks_of[label] >= rare]
        if len(kept) < 2:
            raise DatasetError(f"fewer than two classes in '{root}' have {rare} tracks")
        number = {label: kept.index(label) if label in kept else -1 for label in range(len(names))}
        names = tuple(names[label] for label in kept)
        groups = [(name, number[label], members) for name, label, members in groups]
    digest = TracksDigest(names)
    tracks: list[Track] = []
    bad: dict[Path, str] = {}
    for group in groups:
        track = _read(group, rate, (_SHARPER * crop_size) ** 2, digest, bad)
        if track.frames:
            tracks.append(replace(track, group=parts.get(track.id, "")))
    if bad and not skip_bad:
        raise DatasetError(
            f"{len(bad)} of {sum(len(images) for _, _, images in groups)} images in '{root}' cannot be read: "
            f"{'; '.join(bad.values())}; mend or remove them, or leave them out with --skip-bad"
        )
    empty = [name for label, name in enumerate(names) if not any(track.label == label for track in tracks)]
    if empty:
        raise DatasetError(f"no image of class '{empty[0]}' in '{root}' can be read")
    return TrackSet(
        root.name or "folders",
        names,
        tuple(tracks),
        digest.hexdigest(),
        skipped=tuple(str(path) for path in bad),
    )


def load_karoo(
    root: Path, skip_bad: bool = False, crop_size: int = 128, split_by: str = "", rare: int = 14
) -> TrackSet:
    """Camera traps of Snapshot Karoo: a track is one burst at one site, 30 s to minutes of a passing animal.

    Species of fewer than `rare` tracks are the outside world. `tracks.csv` has the columns site and time.
    """
    if not (root / LIST).is_file():
        raise DatasetError(f"'{root}' has no {LIST}, the list of its crops (see docs/train.md)")
    return replace(load_folders(root, "tracks", 1.0, skip_bad, crop_size, split_by, rare), name="karoo")


def _listed(root: Path, split_by: str) -> tuple[tuple[str, ...], list[Group], dict[str, str]]:
    """Classes, tracks, and the value of `split_by` of each track, from the list in the root."""
    needed = ["file", "class", "track", "frame", *([split_by] if split_by else [])]
    members: dict[tuple[str, str], list[tuple[int, Path]]] = defaultdict(list)
    parts: dict[str, str] = {}
    with (root / LIST).open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        missing = [name for name in needed if name not in (rows.fieldnames or [])]
        if missing:
            raise DatasetError(
                f"'{root / LIST}' has no column '{missing[0]}'; needed are {', '.join(needed)}"
            )
        for row in rows:
            try:
                members[row["class"], row["track"]].append((int(row["frame"]), root / row["file"]))
            except (TypeError, ValueError):
                raise DatasetError(f"line {rows.line_num} of '{root / LIST}' is no track: {row}") from None
            if split_by:
                parts[f"{row['class']}/{row['track']}"] = row[split_by]
    names = tuple(sorted({name for name, _ in members}))
    if len(names) < 2:
        raise DatasetError(f"'{root / LIST}' lists {len(names)} classes; expected two or more")
    groups = [
        (f"{name}/{track}", names.index(name), sorted(images))
        for (name, track), images in sorted(members.items())
    ]
    return names, groups, parts


def _from_names(root: Path, layout: Layout) -> tuple[tuple[str, ...], list[Group]]:
    """Classes and tracks, from the names of folders and files."""
    folders = sorted(f for f in root.iterdir() if f.is_dir() and not f.name.startswith("."))
    if len(folders) < 2:
        raise DatasetError(
            f"folder '{root}' has {len(folders)} class folders; expected two or more, named after the "
            "classes, with images <track>_<frame>.<ext> or *.<ext> in them"
        )
    images = {folder: _images(folder) for folder in folders}
    whole = _whole_tracks(root, [path for paths in images.values() for path in paths], layout)
    return tuple(folder.name for folder in folders), [
        group
        for label, folder in enumerate(folders)
        for group in _groups(folder, label, images[folder], whole)
    ]


def _images(folder: Path) -> list[Path]:
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGE_EXTENSIONS)
    if not paths:
        known = ", ".join(sorted(IMAGE_EXTENSIONS))
        raise DatasetError(f"class folder '{folder}' holds no images ({known})")
    return paths


def _whole_tracks(root: Path, paths: Sequence[Path], layout: Layout) -> bool:
    """Whether the names tell tracks and frames; a mixture is refused unless the user said what is meant."""
    if layout == "images":
        return False
    stray = [path for path in paths if _TRACK_FRAME.fullmatch(path.stem) is None]
    if not stray:
        return True
    if layout == "auto" and len(stray) == len(paths):
        return False
    shown = ", ".join(f"'{path.relative_to(root)}'" for path in stray[:_NAMED])
    more = f" and {len(stray) - _NAMED} more" if len(stray) > _NAMED else ""
    raise DatasetError(
        f"{len(stray)} of {len(paths)} images in '{root}' are not named <track>_<frame>: {shown}{more}; "
        "rename or remove them, or say --layout images where every image shows another object"
    )


def _groups(folder: Path, label: int, paths: Sequence[Path], whole: bool) -> list[Group]:
    groups: dict[str, list[tuple[int, Path]]] = defaultdict(list)
    for path in paths:
        match = _TRACK_FRAME.fullmatch(path.stem) if whole else None
        if match is None:
            groups[path.name].append((0, path))
        else:
            groups[match["track"]].append((int(match["frame"]), path))
    return [(f"{folder.name}/{name}", label, sorted(members)) for name, members in sorted(groups.items())]


def _read(group: Group, rate: float, pixels: int, digest: TracksDigest, bad: dict[Path, str]) -> Track:
    """The frames that can be read, none larger than `pixels`; what is wrong with the others goes to `bad`."""
    name, label, members = group
    digest.begin_track(name, label)
    frames = []
    for index, path in members:
        try:
            image = read_image(path)
        except DatasetError as error:
            bad[path] = str(error)
            continue
        height, width = image.shape[:2]
        frame = Frame(image, (0.0, 0.0, float(width), float(height)), time=index / rate)
        digest.add_frame(frame)
        frames.append(shrunk(frame, pixels))
    return Track(name, label, tuple(frames))
