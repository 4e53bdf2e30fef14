"""Objects worth a person's time: their crops, as a data set of folders to be labelled and trained on.

`CLASS/TRACK_FRAME.png`, where the folder is what the model took the object for, or `unknown`. Who labels
moves files to the right folder. The boxes come from the tables of the fleet, the pixels from the bags.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from distributed import Client, as_completed

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import CameraTopics, find_cameras, name_cameras
from lla_fusion_ros.fleet import tables
from lla_fusion_ros.fleet.folder import read_records
from lla_fusion_ros.fleet.plan import BAGS_FOLDER
from lla_fusion_ros.images.crops import Pixels
from lla_fusion_ros.messages.images import parse_compressed_image, parse_image
from lla_fusion_ros.replay.sinks import cell, no_formula, writing
from lla_fusion_ros.types.errors import InputError, LlaFusionError
from lla_fusion_ros.types.printable import escaped, file_name
from lla_fusion_ros.warnings.result import (
    CAMERA_DISAGREEMENT,
    IDENTITY_SWITCH,
    OUT_OF_DISTRIBUTION,
    P_VALUE_NAMES,
    TESTED,
)

MOST_FRAMES = 20  # of an object, spread over its time
UNKNOWN = "unknown"
LIST = "hard.csv"
_ODD = 0.1  # p-values above do not speak of an unknown object or a contradiction
_REASONS = {UNKNOWN: (OUT_OF_DISTRIBUTION,), "contradicting": (IDENTITY_SWITCH, CAMERA_DISAGREEMENT)}
_COLUMNS = ["object", "views", "fused_class", "fused_p", *P_VALUE_NAMES]


@dataclass(frozen=True, slots=True)
class Hard:
    """An object, and why it is hard: `unknown`, `contradicting` or `unsure`; names as in the tables."""

    bag: str
    path: str
    object: str
    why: str
    fused_class: str
    fused_p: float

    @property
    def folder(self) -> str:
        return UNKNOWN if self.why == UNKNOWN else file_name(self.fused_class)

    @property
    def track(self) -> str:
        return f"{self.bag}~{file_name(self.object)}"


def hardest(fleet: Path, count: int) -> list[Hard]:
    """The `count` hardest objects, a third for each reason as far as there are so many."""
    ranked: dict[str, list[tuple[float, str, Hard]]] = {UNKNOWN: [], "contradicting": [], "unsure": []}
    for record in read_records(fleet):
        rows = tables.read(fleet / BAGS_FOLDER / record["name"] / tables.OBJECTS, _COLUMNS).to_pylist()
        for why, kept in ranked.items():
            for row in rows:
                own = row["object"], why, row["fused_class"], row["fused_p"]
                hard = Hard(record["name"], record["path"], *own)
                kept.append((_hardness(row, why), f"{hard.bag}/{hard.object}", hard))
            kept[:] = nlargest(count, (item for item in kept if item[0] > 0), key=lambda item: item[:2])
    chosen: dict[str, Hard] = {}
    for place in range(count):
        for kept in ranked.values():
            if place < len(kept) and len(chosen) < count:
                chosen.setdefault(kept[place][1], kept[place][2])
    return list(chosen.values())


def _hardness(row: dict[str, Any], why: str) -> float:
    """From 0, not hard, to 1."""
    if why == "unsure":
        return 1 - float(row["fused_p"])
    least = min(float(row[P_VALUE_NAMES[TESTED.index(reason)]]) for reason in _REASONS[why])
    return max(_ODD - least, 0.0) / _ODD


def export_hard(client: Client, fleet: Path, count: int, target: Path, cameras: Sequence[str]) -> list[str]:
    """Write the data set, which appears whole; what could not be exported, in sentences."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"--export-hard: '{target}' exists already; name a new folder")
    chosen = hardest(fleet, count)
    by_bag: dict[str, list[Hard]] = {}
    for hard in chosen:
        by_bag.setdefault(hard.bag, []).append(hard)
    part = target.absolute().with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    with writing(target):
        part.mkdir(parents=True)
        try:
            futures = {
                client.submit(cut_bag, fleet.absolute(), own, part, list(cameras), pure=False): own
                for own in by_bag.values()
            }
            missing = [sentence for future in as_completed(futures) if (sentence := future.result())]
            _write_list(part / LIST, chosen)
            if target.exists():
                target.rmdir()
            part.rename(target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return sorted(missing)


def cut_bag(fleet: Path, objects: Sequence[Hard], target: Path, cameras: list[str]) -> str:
    """The crops of some objects of one bag; why there are none, or nothing."""
    try:
        wanted = _boxes(fleet / BAGS_FOLDER / objects[0].bag / tables.FRAMES, objects)
        with Bag(objects[0].path) as bag:
            wiring = name_cameras(bag.summary, cameras) if cameras else find_cameras(bag.summary)
            if not wiring.cameras:
                return f"'{objects[0].path}' has no images"
            for place, image in _crops(bag, wiring.cameras, wanted):
                file = target / place
                file.parent.mkdir(exist_ok=True)
                cv2.imencode(".png", image)[1].tofile(file)
    except (LlaFusionError, OSError) as error:
        return f"'{objects[0].path}': {error}"
    return ""


Box = tuple[str, str, Sequence[float]]  # file, track, x y width height
Wanted = dict[tuple[str, int], list[Box]]  # by camera and stamp


def _boxes(file: Path, objects: Sequence[Hard]) -> Wanted:
    """Where to cut, spread over the time of each object."""
    columns = ["object", "camera", "stamp", "track", "x", "y", "width", "height"]
    rows: dict[str, list[dict[str, Any]]] = {hard.object: [] for hard in objects}
    for row in tables.read(file, columns).to_pylist():
        if row["object"] in rows:
            rows[row["object"]].append(row)
    wanted: Wanted = {}
    for hard in objects:
        own = rows[hard.object]
        for index in np.unique(np.linspace(0, len(own) - 1, min(len(own), MOST_FRAMES)).round().astype(int)):
            row = own[index]
            box = f"{hard.folder}/{hard.track}_{index}.png", row["track"], [row[k] for k in columns[4:]]
            wanted.setdefault((row["camera"], row["stamp"]), []).append(box)
    return wanted


def _crops(bag: Bag, cameras: Iterable[CameraTopics], wanted: Wanted) -> Iterable[tuple[str, np.ndarray]]:
    topics = {camera.image: camera for camera in cameras}
    for message in bag.messages(topics):
        camera = topics[message.topic]
        image = (parse_compressed_image if camera.compressed else parse_image)(message.data)
        for place, track, box in wanted.get((escaped(camera.name), image.header.stamp), ()):
            if not camera.crops:
                yield place, cut(image.pixels(), box)
            elif escaped(image.header.frame_id) == track:
                yield place, cut(image.pixels())


def cut(pixels: Pixels, box: Sequence[float] | None = None) -> np.ndarray:
    """The pixels of a box as they are, at least one; BGR.   [height, width, 3] uint8"""
    array, (rows, columns) = pixels.array, pixels.shape
    if box is not None:
        x, y, width, height = box
        left, right = _span(x, width, columns)
        top, bottom = _span(y, height, rows)
        array = array[top:bottom, left:right]
    if array.dtype != np.uint8:
        array = (array >> 8).astype(np.uint8)
    if pixels.order == "mono":
        return np.repeat(array[..., None], 3, axis=-1)
    return np.ascontiguousarray(array[..., ::-1] if pixels.order == "rgb" else array)


def _span(centre: float, length: float, limit: int) -> tuple[int, int]:
    first = min(max(round(centre - length / 2), 0), limit - 1)
    return first, min(max(round(centre + length / 2), first + 1), limit)


def _write_list(file: Path, chosen: Sequence[Hard]) -> None:
    with file.open("w", newline="", encoding="utf8") as handle:
        rows = csv.writer(handle)
        rows.writerow(("folder", "track", "why", "class", "p", "bag", "object"))
        for each in chosen:
            words = (each.folder, each.track, each.why, each.fused_class)
            numbers = f"{each.fused_p:.4f}"
            rows.writerow((*map(no_formula, words), numbers, cell(each.path), no_formula(each.object)))
