"""Read a rosbag2 database page by page, without its trees: what is left of a file that was cut off.

SQLite refuses a file shorter than its header says, or stops at the first missing page. Messages lie in leaf
pages that can be told by their first byte, long ones continue in chains of overflow pages, so every message
whose pages are all present can be had (the file format is documented at sqlite.org/fileformat2.html).
"""

from __future__ import annotations

import mmap
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lla_fusion_ros.bags.types import Message, Summary, Topic, full_type
from lla_fusion_ros.types.errors import BagError

MAGIC = b"SQLite format 3\x00"
_LEAF = 0x0D
_INTEGER_SIZE = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0}


class _Cell(NamedTuple):
    """A row: its payload of `size` bytes begins at `at` in the file, `local` of them in the leaf page."""

    at: int
    size: int
    local: int


@dataclass
class SqliteScan:
    """One database file, its messages found by looking at every page."""

    path: Path
    cut_off: bool = False
    messages_lost: int = 0
    _topics: dict[int, tuple[str, str]] = field(default_factory=dict)  # id -> name, type
    _index: list[tuple[int, int, int, _Cell]] = field(default_factory=list)  # time, row, topic id, where

    def summary(self) -> Summary:
        """Topics, counts and times by a pass over all pages; the index it leaves is small."""
        self._topics, self._index, self.messages_lost = {}, [], 0
        definitions: dict[str, str] = {}
        with _Pages(self.path) as pages:
            self.cut_off = pages.missing > 0
            left = 2 * pages.length  # rows share no page; stale copies of some may be left
            for row, cell in pages.rows():
                head = pages.head(cell)
                match head:
                    case [None, int(topic), int(time), bytes()]:
                        left -= cell.size
                        if left >= 0 and pages.complete(cell):
                            self._index.append((time, row, topic, cell))
                        else:
                            self.messages_lost += 1
                    case [None, str(name), str(kind), "cdr", *_] if name.startswith("/"):
                        self._topics[row] = name, full_type(kind)
                    case [None, str(kind), "ros2msg", str(text), *_]:
                        definitions[full_type(kind)] = text
        self._index = sorted(entry for entry in self._index if entry[2] in self._topics)
        counts: dict[int, int] = {}
        for _, _, topic, _ in self._index:
            counts[topic] = counts.get(topic, 0) + 1
        topics = (
            Topic(name, kind, counts.get(key, 0), definitions.get(kind, ""))
            for key, (name, kind) in self._topics.items()
        )
        first, last = (self._index[0][0], self._index[-1][0]) if self._index else (0, -1)
        return Summary(tuple(topics), first, last)

    def messages(self, topics: Collection[str], start: int) -> Iterator[Message]:
        with _Pages(self.path) as pages:
            for time, _, topic, cell in self._index:
                name, kind = self._topics[topic]
                if time >= start and name in topics:
                    match _record(pages.payload(cell)):
                        case [None, int(), int(), bytes(data)]:
                            yield Message(name, kind, time, data)


class _Pages:
    """The file as pages of equal size."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        header = self._file.read(100)
        if len(header) < 100 or not header.startswith(MAGIC):
            self._file.close()
            raise BagError(f"'{path}' is not a sqlite3 bag: it does not begin with the sqlite3 magic")
        size = int.from_bytes(header[16:18], "big")
        self._page = 65536 if size == 1 else size
        self._usable = self._page - header[20]
        if self._page < 512 or self._usable < 480:  # the least that sqlite itself allows
            self._file.close()
            raise BagError(f"'{path}' is damaged: it claims pages of {self._usable} usable bytes")
        self._bytes = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        self._count = len(self._bytes) // self._page
        self.missing = max(0, int.from_bytes(header[28:32], "big") - self._count)

    def __enter__(self) -> _Pages:
        return self

    def __exit__(self, *_: object) -> None:
        self._bytes.close()
        self._file.close()

    @property
    def length(self) -> int:
        """Bytes of the file."""
        return len(self._bytes)

    def rows(self) -> Iterator[tuple[int, _Cell]]:
        """Row id and place of every row in every leaf page of any table."""
        for number in range(self._count):
            base = number * self._page
            at = base + (100 if number == 0 else 0)
            if self._bytes[at] != _LEAF:
                continue
            cells = int.from_bytes(self._bytes[at + 3 : at + 5], "big")
            if 8 + 2 * cells > self._page:
                continue
            for index in range(cells):
                pointer = at + 8 + 2 * index
                offset = int.from_bytes(self._bytes[pointer : pointer + 2], "big")
                size, where = _varint(self._bytes, base + offset)
                row, where = _varint(self._bytes, where)
                local = self._local(size)
                if local >= 0 and size <= len(self._bytes) and where + local <= base + self._page:
                    yield row, _Cell(where, size, local)

    def head(self, cell: _Cell) -> list[int | str | bytes | None]:
        """The fields of a row as far as its leaf page holds them: long ones are cut short."""
        return _record(self._bytes[cell.at : cell.at + cell.local])

    def complete(self, cell: _Cell) -> bool:
        return len(self.payload(cell)) == cell.size

    def payload(self, cell: _Cell) -> bytes:
        """All bytes of a row, or fewer where an overflow page is missing."""
        parts = [self._bytes[cell.at : cell.at + cell.local]]
        left = cell.size - cell.local
        link = cell.at + cell.local
        while left > 0:
            page = int.from_bytes(self._bytes[link : link + 4], "big")
            if not 0 < page <= self._count:
                break
            link = (page - 1) * self._page
            parts.append(self._bytes[link + 4 : link + 4 + min(left, self._usable - 4)])
            left -= len(parts[-1])
        return b"".join(parts)

    def _local(self, size: int) -> int:
        """How many bytes of a payload stay in the leaf page."""
        most = self._usable - 35
        if size <= most:
            return size
        least = (self._usable - 12) * 32 // 255 - 23
        kept = least + (size - least) % (self._usable - 4)
        return kept if kept <= most else least


def _record(payload: bytes) -> list[int | str | bytes | None]:
    """The fields of a row; an empty list where the bytes are not a record."""
    if not payload:
        return []
    end, at = _varint(payload, 0)
    kinds = []
    while at < min(end, len(payload)):
        kind, at = _varint(payload, at)
        kinds.append(kind)
    fields: list[int | str | bytes | None] = []
    at = end
    for kind in kinds:
        if kind >= 12:
            size = (kind - 12) // 2
            raw = payload[at : at + size]
            fields.append(raw.decode("utf8", "replace") if kind % 2 else raw)
        elif kind == 0:
            size = 0
            fields.append(None)
        elif kind in _INTEGER_SIZE:
            size = _INTEGER_SIZE[kind]
            fields.append(int.from_bytes(payload[at : at + size], "big", signed=True) if size else kind - 8)
        else:
            return []
        at += size
    return fields


def _varint(data: bytes | mmap.mmap, at: int) -> tuple[int, int]:
    """A big-endian base-128 integer of at most nine bytes, and where the next field begins."""
    value = 0
    for index in range(9):
        if at + index >= len(data):
            return value, len(data)
        byte = data[at + index]
        if index == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + index + 1
    raise AssertionError("unreachable")
