"""GTSRB and BelgiumTSC in their official layouts: class folders with annotation files `GT-<class>.csv`."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lla_fusion_ros.lab.datasets.images import Part, digest_tracks, parts_of, read_image
from lla_fusion_ros.types.errors import DatasetError
from lla_fusion_ros.types.track_set import Frame, Track, TrackSet

_COLUMNS = ("Filename", "Width", "Height", "Roi.X1", "Roi.Y1", "Roi.X2", "Roi.Y2", "ClassId")


@dataclass(frozen=True, slots=True)
class Annotation:
    """One line of the file; the box is x0, y0, x1, y1 with x1 and y1 exclusive."""

    group: str
    index: int
    path: Path
    size: tuple[int, int]
    box: tuple[float, float, float, float]


def class_folders(root: Path, expected: int, what: str, complete: bool = True) -> list[tuple[int, Path]]:
    """The class folders 00000 … with their numbers; DatasetError names those that are missing.

    Args:
        complete: all classes must be there; otherwise some of them will do.
    """
    folders = [(number, root / f"{number:05d}") for number in range(expected)]
    found = [(number, folder) for number, folder in folders if folder.is_dir()]
    if len(found) < (expected if complete else 1):
        missing = [folder.name for _, folder in folders if not folder.is_dir()]
        shown = ", ".join(missing[:5]) + (" …" if len(missing) > 5 else "")
        raise DatasetError(
            f"{what} is incomplete: expected {expected} class folders 00000 to {expected - 1:05d} in "
            f"'{root}', missing {len(missing)} ({shown})"
            + ("; where only some are meant to be there, give the option partial=true" if complete else "")
        )
    return found


def read_annotations(folder: Path, class_id: int) -> list[Annotation]:
    """All lines of `GT-<class>.csv`; a line that is not an annotation is an error that names the line."""
    path = folder / f"GT-{folder.name}.csv"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"annotations expected in '{path}' cannot be read: {error}") from error
    rows = csv.DictReader(lines, delimiter=";", strict=True)
    try:
        if rows.fieldnames is None or not set(_COLUMNS) <= set(rows.fieldnames):
            raise DatasetError(f"'{path}' must begin with the columns {';'.join(_COLUMNS)}")
        return [_annotation(row, path, number, class_id) for number, row in enumerate(rows, start=2)]
    except csv.Error as error:
        raise DatasetError(f"'{path}' is damaged: {error}") from error


def _annotation(row: dict[str, str], path: Path, line: int, class_id: int) -> Annotation:
    try:
        name = row["Filename"]
        width, height, x0, y0, x1, y1, label = (int(row[column]) for column in _COLUMNS[1:])
        group, index = Path(name).stem.split("_")
        if Path(name).name != name:
            raise ValueError("the file name leaves the folder")
        if not (0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height):
            raise ValueError(f"box {x0},{y0},{x1},{y1} does not lie in {width}x{height}")
        if label != class_id:
            raise ValueError(f"ClassId {label}, expected {class_id}")
        return Annotation(group, int(index), path.parent / name, (width, height), (x0, y0, x1, y1))
    except (ValueError, TypeError, AttributeError) as error:
        raise DatasetError(f"'{path}' line {line} is damaged: {error}") from error


def read_tracks(
    folder: Path, class_id: int, prefix: str = "", part: str = "", cameras: bool = False, rate: float = 30.0
) -> list[Track]:
    """The tracks of one class folder, by the number before the underscore.

    Args:
        prefix: of the tracks' names.
        part: of the data set, "train" or "test".
        cameras: the number after the underscore is the camera (one moment), not the position in time.
    """
    groups: dict[str, list[Annotation]] = defaultdict(list)
    listed: set[Path] = set()
    for annotation in read_annotations(folder, class_id):
        if annotation.path not in listed:  # BelgiumTSC lists 28 of its images twice
            listed.add(annotation.path)
            groups[annotation.group].append(annotation)
    tracks = []
    for group, items in sorted(groups.items()):
        frames = tuple(_frame(item, cameras, rate) for item in sorted(items, key=lambda item: item.index))
        tracks.append(Track(f"{prefix}{folder.name}/{group}", class_id, frames, part))
    return tracks


def _frame(item: Annotation, cameras: bool, rate: float) -> Frame:
    if not item.path.is_file():
        raise DatasetError(
            f"image '{item.path}' is listed in the annotations but missing; copy the folder again"
        )
    image = read_image(item.path)
    if image.shape[1::-1] != item.size:
        raise DatasetError(
            f"image '{item.path}' is {image.shape[1]}x{image.shape[0]}, "
            f"annotated as {item.size[0]}x{item.size[1]}"
        )
    if cameras:
        return Frame(image, item.box, camera=item.index)
    return Frame(image, item.box, time=item.index / rate)


def _names(listed: str) -> tuple[str, ...]:
    """Class names that stand between bars and ends of lines."""
    return tuple(name.strip() for name in listed.strip().replace("\n", "|").split("|"))


def mirror_images(
    classes: int, symmetric: Iterable[int], pairs: Iterable[tuple[int, int]]
) -> tuple[int | None, ...]:
    """For each class the class that its mirror image shows, None where it shows none.

    Training may mirror those that show one, which doubles the rare ones.

    Args:
        symmetric: classes that look the same in a mirror.
        pairs: classes of which one is the mirror image of the other.
    """
    shown: dict[int, int] = {label: label for label in symmetric}
    for left, right in pairs:
        shown |= {left: right, right: left}
    return tuple(shown.get(label) for label in range(classes))


# In ClassId order.
GTSRB_NAMES = _names(
    """
    speed limit 20 | speed limit 30 | speed limit 50 | speed limit 60 | speed limit 70 | speed limit 80
    end of speed limit 80 | speed limit 100 | speed limit 120 | no overtaking | no overtaking by lorries
    priority at next crossing | priority road | give way | stop | no vehicles | no lorries | no entry
    danger | bend to the left | bend to the right | double bend | bumpy road | slippery road
    road narrows on the right | road works | traffic signals ahead | pedestrians | children | bicycles
    ice or snow | wild animals | end of all limits | turn right ahead | turn left ahead | ahead only
    ahead or right | ahead or left | keep right | keep left | roundabout | end of no overtaking
    end of no overtaking by lorries
    """
)

_GTSRB_MIRRORED = mirror_images(
    len(GTSRB_NAMES),
    symmetric=(11, 12, 13, 15, 17, 18, 22, 26, 30, 35),
    pairs=((19, 20), (33, 34), (36, 37), (38, 39)),
)


def load_gtsrb(root: Path, partial: bool = False) -> TrackSet:
    """All training tracks: `root` is the folder GTSRB, or any folder between it and the class folders.

    Args:
        partial: some class folders may be missing, as in a part of the set; classes keep their numbers.
    """
    images = _gtsrb_images(root)
    tracks: list[Track] = []
    for class_id, folder in class_folders(images, len(GTSRB_NAMES), "GTSRB", complete=not partial):
        tracks.extend(read_tracks(folder, class_id))
    return TrackSet("gtsrb", GTSRB_NAMES, tuple(tracks), digest_tracks(GTSRB_NAMES, tracks), _GTSRB_MIRRORED)


def _gtsrb_images(root: Path) -> Path:
    for inside in ("Final_Training/Images", "GTSRB/Final_Training/Images", "Images", "."):
        if any((root / inside / f"{number:05d}").is_dir() for number in range(len(GTSRB_NAMES))):
            return root / inside
    raise DatasetError(
        f"no GTSRB in '{root}': expected Final_Training/Images/00000 to 00042, each with GT-<class>.csv and "
        "<track>_<frame>.ppm (docs/train.md says where to get it)"
    )


# In the order of the class folders; the data set itself only numbers them.
BELGIUM_NAMES = _names(
    """
    uneven road | speed bump ahead | slippery road | bend to the left | bend to the right
    double bend, first left | double bend, first right | children | bicycles | cattle | road works
    traffic signals ahead | railway crossing with gates | danger | road narrows | road narrows on the left
    road narrows on the right | priority at next crossing | crossing, give way to the right | give way
    give way to oncoming traffic | stop | no entry | no bicycles | weight limit | no lorries | width limit
    height limit | no vehicles | no left turn | no right turn | no overtaking | speed limit
    path for pedestrians and bicycles | ahead only | turn left or right | ahead or right | roundabout
    bicycle path | divided path for bicycles and pedestrians | no parking | no stopping
    no parking from 1st to 15th | no parking from 16th to 31st | priority over oncoming traffic | parking
    parking for disabled people | parking for cars | parking for lorries | parking for coaches
    parking on the verge | residential zone | end of residential zone | one way | dead end | end of works
    pedestrian crossing | bicycle crossing | parking this way | speed bump | end of priority road
    priority road
    """
)

# "turn left or right" is one class for both; the bar of "no left turn" stands the wrong way in a mirror.
_BELGIUM_MIRRORED = mirror_images(
    len(BELGIUM_NAMES),
    symmetric=(0, 1, 11, 12, 13, 14, 17, 18, 19, 22, 28, 34, 35, 41, 53, 54, 59, 61),
    pairs=((3, 4), (5, 6), (15, 16)),
)

_BELGIUM_FOLDERS = {"train": "Training", "test": "Testing"}


def load_belgium(root: Path, part: Part = "all", partial: bool = False) -> TrackSet:
    """A track is one physical sign at one moment; the camera index of a frame is the view.

    Args:
        partial: some class folders of Training, or one of the two parts, may be missing.
    """
    base = root / "BelgiumTSC" if (root / "BelgiumTSC").is_dir() else root
    tracks: list[Track] = []
    present = [wanted for wanted in parts_of(part) if (base / _BELGIUM_FOLDERS[wanted]).is_dir()]
    for wanted in present if partial and present else parts_of(part):
        name = _BELGIUM_FOLDERS[wanted]
        if wanted not in present:
            raise DatasetError(
                f"no BelgiumTSC in '{root}': expected {name}/00000 to {name}/00061, each with GT-<class>.csv "
                "and <sign>_<view>.ppm (docs/train.md says where to get it); the options part=train and "
                "part=test ask for one of the two folders only"
            )
        what = f"BelgiumTSC {name}"
        # Also the official Testing lacks some classes; Training has all.
        complete = wanted == "train" and not partial
        folders = class_folders(base / name, len(BELGIUM_NAMES), what, complete)
        for class_id, folder in folders:
            tracks.extend(read_tracks(folder, class_id, prefix=f"{name}/", part=wanted, cameras=True))
    return TrackSet(
        "belgiumtsc", BELGIUM_NAMES, tuple(tracks), digest_tracks(BELGIUM_NAMES, tracks), _BELGIUM_MIRRORED
    )
