"""The annotation files `GT-<class>.csv` of GTSRB and BelgiumTSC: name, size and box of every image."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from lla_fusion_ros.lab.datasets.images import read_image
from lla_fusion_ros.types.errors import DatasetError
from lla_fusion_ros.types.track_set import Frame, Track

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
