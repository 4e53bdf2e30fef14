"""What a bag is, whatever it is called and wherever it lies: a hash of its size, its index and samples of it.

A recording of an hour has gigabytes, so not all of them are read. The index of an mcap file lies at its end
and has the place and time of every chunk; the head of a sqlite3 file counts its changes.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from lla_fusion_ros.bags.files import find_files

_HEAD, _TAIL, _SAMPLE, _SAMPLES = 1 << 16, 1 << 20, 1 << 12, 32


def bag_digest(path: Path) -> tuple[str, int]:
    """The hash, and the bytes of all storage files; BagError or OSError where there is nothing to read."""
    found = hashlib.sha256()
    size = 0
    for file in find_files(path).files:
        log = file.with_name(file.name + "-wal")  # the newest messages of a sqlite3 bag whose recorder died
        for part in (file, log) if log.exists() else (file,):
            size += _add(found, part)
    return found.hexdigest(), size


def file_digest(path: Path | None) -> str:
    """Of a small file, whole; empty where there is none."""
    return "" if path is None else hashlib.sha256(path.read_bytes()).hexdigest()


def _add(found: hashlib._Hash, file: Path) -> int:
    size = file.stat().st_size
    found.update(size.to_bytes(8, "little"))
    with file.open("rb") as handle:
        found.update(handle.read(_HEAD))
        for index in range(_SAMPLES):
            handle.seek(size * index // _SAMPLES)
            found.update(handle.read(_SAMPLE))
        handle.seek(max(size - _TAIL, 0))
        found.update(handle.read())
    return size
