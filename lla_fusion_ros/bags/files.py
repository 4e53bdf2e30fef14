"""Which files make up a bag: a folder or one file, with or without metadata.yaml, split, compressed."""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import yaml

from lla_fusion_ros.bags.compression import ZstdError, open_zstd
from lla_fusion_ros.types.errors import BagError

STORAGE_SUFFIXES = (".mcap", ".db3")
COMPRESSED_SUFFIXES = (".zstd", ".zst")
ROS1_MAGIC = b"#ROSBAG V"
_BLOCK = 1 << 20
# A compressed bag file unpacks to so much, or so many times its size; more is made to fill the disk.
_PLENTY = 1 << 30
_MOST_TIMES = 200


@dataclass(frozen=True, slots=True)
class BagFiles:
    """The storage files of a bag, in recording order as far as names tell, and what is known to be amiss."""

    path: Path
    files: tuple[Path, ...]
    notes: tuple[str, ...]


def find_files(path: Path) -> BagFiles:
    """Look at a bag folder or a single storage file; a ROS 1 bag is refused with the way out."""
    if not path.exists():
        raise BagError(f"bag '{path}' does not exist")
    if path.is_file():
        _refuse_ros1(path)
        if not _is_storage(path):
            raise BagError(
                f"'{path}' is not a rosbag2 file: expected .mcap or .db3 (also .zstd), or their folder"
            )
        return BagFiles(path, (path,), ())
    present = sorted((file for file in path.iterdir() if _is_storage(file)), key=_natural)
    names = {file.name for file in present}
    listed, notes = _listed(path, names)
    missing = [name for name in listed if name not in names]
    notes += [f"{name[:200]} is listed in metadata.yaml but missing" for name in missing]
    ordered = [path / name for name in dict.fromkeys(listed) if name in names]
    ordered += [file for file in present if file not in ordered]
    if not ordered:
        for file in path.glob("*.bag"):
            _refuse_ros1(file)
        raise BagError(f"folder '{path}' holds no rosbag2 storage file (.mcap or .db3)")
    return BagFiles(path, tuple(ordered), tuple(notes))


def unpack(file: Path, folder: Path) -> tuple[Path, str | None]:
    """A zstd-compressed storage file unpacked into `folder`, and a note where it was cut off."""
    if file.suffix not in COMPRESSED_SUFFIXES:
        return file, None
    target = folder / file.stem
    note = None
    left = max(_PLENTY, _MOST_TIMES * file.stat().st_size)
    with open_zstd(file, "rb") as packed, target.open("wb") as out:
        try:
            while block := packed.read1(min(_BLOCK, left)):
                out.write(block)
                left -= len(block)
        except (ZstdError, EOFError) as error:
            note = f"{file.name} is damaged ({error}): unpacked as far as it goes"
        except OSError as error:
            raise BagError(f"'{file}' cannot be unpacked into '{folder}': {error.strerror}") from error
    if not left:
        raise BagError(f"'{file}' unpacks to more than {target.stat().st_size} bytes: it is no recording")
    return target, note


def rescue_wal(file: Path, folder: Path) -> Path:
    """A copy of a database whose recorder died before merging its write-ahead log, with the log merged.

    The log holds the newest messages; sqlite merges it only where it may write.
    """
    log = file.with_name(file.name + "-wal")
    if file.suffix != ".db3" or not log.exists() or not log.stat().st_size:
        return file
    target = folder / file.name
    shutil.copyfile(file, target)
    shutil.copyfile(log, target.with_name(log.name))
    with suppress(sqlite3.Error), closing(sqlite3.connect(target)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return target


def _listed(folder: Path, present: set[str]) -> tuple[list[str], list[str]]:
    """File names in metadata.yaml, and notes on what is wrong with it.

    Only names count, never folders: a bag cannot make its reader open files elsewhere.
    """
    file = folder / "metadata.yaml"
    if not file.exists():
        return [], ["metadata.yaml is missing: the storage files were read as they are"]
    try:
        information = yaml.safe_load(file.read_text())["rosbag2_bagfile_information"]
        names = [PurePosixPath(name).name for name in information["relative_file_paths"]]
    except (yaml.YAMLError, KeyError, TypeError, ValueError, RecursionError, OSError):
        return [], ["metadata.yaml is unreadable: the storage files were read as they are"]
    return [_existing_name(present, name) for name in names], []


def _existing_name(present: set[str], name: str) -> str:
    """metadata.yaml of a recorder that died may name files before their compression."""
    return next((name + suffix for suffix in ("", *COMPRESSED_SUFFIXES) if name + suffix in present), name)


def _is_storage(file: Path) -> bool:
    name = file.with_suffix("") if file.suffix in COMPRESSED_SUFFIXES else file
    return file.is_file() and name.suffix in STORAGE_SUFFIXES


def _natural(file: Path) -> list[object]:
    """bag_10 comes after bag_9."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", file.name)]


def _refuse_ros1(file: Path) -> None:
    with file.open("rb") as handle:
        if handle.read(len(ROS1_MAGIC)) == ROS1_MAGIC:
            raise BagError(
                f"'{file}' is a ROS 1 bag; convert it first: "
                f"rosbags-convert --src {file} --dst {file.with_suffix('')}"
            )
