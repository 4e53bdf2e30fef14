"""Read an mcap file record by record, without its index: what a recorder that died has left.

The layout is that of the MCAP specification: a record is an opcode, a 64-bit length and its content; a chunk
is a record that holds further records. `rosbags` refuses a file without footer, this reads up to the damage.
"""

from __future__ import annotations

import struct
from binascii import crc32
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lla_fusion_ros.bags.compression import ZstdError, inflate
from lla_fusion_ros.bags.types import Message, Summary, Topic, full_type
from lla_fusion_ros.types.errors import BagError

MAGIC = b"\x89MCAP0\r\n"
SCHEMA, CHANNEL, MESSAGE, CHUNK, DATA_END, FOOTER = 0x03, 0x04, 0x05, 0x06, 0x0F, 0x02
_KNOWN = range(0x01, 0x10)
_READ = (SCHEMA, CHANNEL, MESSAGE, CHUNK)
_HEAD = struct.Struct("<BQ")
_CHUNK_HEAD = struct.Struct("<QQQI")
_MESSAGE_HEAD = struct.Struct("<HIQQ")


@dataclass
class Damage:
    """What a pass over the file could not read."""

    cut_off: bool = False
    bytes_lost: int = 0
    chunks_lost: int = 0


@dataclass
class McapScan:
    """One mcap file, read from front to back."""

    path: Path
    damage: Damage = field(default_factory=Damage)
    _types: dict[int, tuple[str, str]] = field(default_factory=dict)  # schema id -> type, definition
    _channels: dict[int, tuple[str, int]] = field(default_factory=dict)  # channel id -> topic, schema id

    def summary(self) -> Summary:
        """Topics, counts and times by a pass over the whole file."""
        counts: dict[int, int] = {}
        start, end = 2**63, -1
        for channel, time, _ in self._messages():
            counts[channel] = counts.get(channel, 0) + 1
            start, end = min(start, time), max(end, time)
        topics = []
        for channel, (name, schema) in self._channels.items():
            kind, definition = self._types.get(schema, ("", ""))
            topics.append(Topic(name, kind, counts.get(channel, 0), definition))
        return Summary(tuple(topics), start if counts else 0, end)

    def messages(self, topics: Collection[str], start: int) -> Iterator[Message]:
        for channel, time, data in self._messages():
            name, schema = self._channels.get(channel, ("", 0))
            if time >= start and name in topics:
                yield Message(name, self._types.get(schema, ("", ""))[0], time, data)

    def _messages(self) -> Iterator[tuple[int, int, bytes]]:
        """Channel, time and content of every readable message, in time order within a chunk."""
        self.damage = Damage()
        with self.path.open("rb") as file:
            size = self.path.stat().st_size
            if file.read(len(MAGIC)) != MAGIC:
                raise BagError(f"'{self.path}' is not an mcap file: it does not begin with the mcap magic")
            while True:
                head = file.read(_HEAD.size)
                if len(head) < _HEAD.size:
                    self.damage.cut_off = True
                    return
                kind, length = _HEAD.unpack(head)
                left = size - file.tell()
                if kind not in _KNOWN:
                    self.damage.cut_off = True
                    self.damage.bytes_lost = left + _HEAD.size
                    return
                if kind in (DATA_END, FOOTER):
                    return
                if kind not in _READ:
                    file.seek(min(length, left), 1)  # an index, or an attachment of any size
                    content = b""
                else:
                    content = file.read(min(length, left))
                if kind == CHUNK:
                    yield from sorted(self._chunk(content), key=lambda message: message[1])
                elif length <= left and (message := self._take(kind, content)):
                    yield message
                if length > left:
                    self.damage.cut_off = True
                    if kind != CHUNK:
                        self.damage.bytes_lost = left + _HEAD.size
                    return

    def _chunk(self, content: bytes) -> Iterator[tuple[int, int, bytes]]:
        if len(content) < _CHUNK_HEAD.size + 4:
            self.damage.bytes_lost += len(content)
            return
        _, _, size, checksum = _CHUNK_HEAD.unpack_from(content)
        at = _CHUNK_HEAD.size
        packed = b""
        try:
            method, at = _string(content, at)
            (packed_size,) = struct.unpack_from("<Q", content, at)
            packed = content[at + 8 : at + 8 + packed_size]
            records = inflate(packed, method, size)
        except (ZstdError, RuntimeError, ValueError, struct.error):  # lz4 raises RuntimeError
            self.damage.chunks_lost += 1
            self.damage.bytes_lost += len(packed)
            return
        if len(records) == size and checksum and crc32(records) != checksum:
            self.damage.chunks_lost += 1
            self.damage.bytes_lost += len(packed)
            return
        at = 0
        while at + _HEAD.size <= len(records):
            kind, length = _HEAD.unpack_from(records, at)
            at += _HEAD.size
            if at + length > len(records):
                self.damage.bytes_lost += len(records) - at
                return
            if message := self._take(kind, records[at : at + length]):
                yield message
            at += length

    def _take(self, kind: int, content: bytes) -> tuple[int, int, bytes] | None:
        """Remember a schema or channel; return a message."""
        if kind == MESSAGE and len(content) >= _MESSAGE_HEAD.size:
            channel, _, time, _ = _MESSAGE_HEAD.unpack_from(content)
            return channel, time, content[_MESSAGE_HEAD.size :]
        try:
            self._define(kind, content)
        except struct.error:
            self.damage.bytes_lost += len(content)
        return None

    def _define(self, kind: int, content: bytes) -> None:
        if kind == SCHEMA:
            name, at = _string(content, 2)
            encoding, at = _string(content, at)
            definition, _ = _string(content, at)
            text = definition if encoding == "ros2msg" else ""
            self._types[struct.unpack_from("<H", content)[0]] = full_type(name), text
        elif kind == CHANNEL:
            channel, schema = struct.unpack_from("<HH", content)
            self._channels[channel] = _string(content, 4)[0], schema


def _string(content: bytes, at: int) -> tuple[str, int]:
    """The string at `at`, and where the next field begins."""
    (length,) = struct.unpack_from("<I", content, at)
    end = at + 4 + length
    return content[at + 4 : end].decode("utf8", "replace"), end
