"""One way to read a bag, whatever its storage, compression, splitting or damage."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rosbags.interfaces import ConnectionExtRosbag2, MessageDefinitionFormat, QosDurability, QosReliability
from rosbags.rosbag2 import Reader

from lla_fusion_ros.bags.compression import plain_message
from lla_fusion_ros.bags.files import find_files, rescue_wal, unpack
from lla_fusion_ros.bags.scan_mcap import McapScan
from lla_fusion_ros.bags.scan_sqlite3 import SqliteScan
from lla_fusion_ros.bags.types import Message, Summary, Topic, full_type, merge
from lla_fusion_ros.types.errors import BagError

# A damaged storage file makes `rosbags`, sqlite or a decompressor raise nearly anything (struct.error,
# MemoryError, AssertionError, …); whatever it is, the file is then read without them.
_DAMAGE = Exception


class _Storage(Protocol):
    def summary(self) -> Summary: ...

    def messages(self, topics: Collection[str], start: int) -> Iterator[Message]: ...


@dataclass
class _Part:
    """One storage file of the bag, under the name the user knows it by."""

    name: str
    file: Path
    storage: _Storage
    summary: Summary


class Bag:
    """A bag open for reading; use it in a `with` statement.

    Attributes:
        summary: topics, counts and times over all files.
        notes: what is amiss and what was lost, one sentence each; more may come while messages are read.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        found = find_files(self.path)
        self.notes: list[str] = list(found.notes)
        self._stack = ExitStack()
        self._parts: list[_Part] = []
        try:
            folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="lla_bag_")))
            for file in found.files:
                plain, note = unpack(file, folder)
                if note:
                    self.notes.append(note)
                plain = rescue_wal(plain, folder)
                self._add(file.name, plain)
        except BaseException:
            self._stack.close()
            raise
        # splits may be listed in any order; messages come in time order
        self._parts.sort(key=lambda part: part.summary.start if part.summary.count else 2**63)
        self.summary = merge([part.summary for part in self._parts])

    def __enter__(self) -> Bag:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def topic(self, name: str) -> Topic | None:
        return next((topic for topic in self.summary.topics if topic.name == name), None)

    def messages(self, topics: Collection[str] | None = None, start: int = 0) -> Iterator[Message]:
        """Messages of some or all topics from time `start` on, in recorded order, as plain CDR."""
        wanted = {topic.name for topic in self.summary.topics} if topics is None else set(topics)
        for part in self._parts:
            for message in self._part_messages(part, wanted, start):
                try:
                    plain = plain_message(message.data)
                except _DAMAGE:
                    self._note(
                        f"{part.name}: compressed messages on {message.topic} are damaged and left out"
                    )
                    continue
                yield message._replace(data=plain)

    def _part_messages(self, part: _Part, topics: set[str], start: int) -> Iterator[Message]:
        last = start - 1
        try:
            for message in part.storage.messages(topics, start):
                last = message.time
                yield message
        except _DAMAGE as error:
            if not isinstance(part.storage, _Indexed):
                raise BagError(f"'{part.file}' cannot be read: {error}") from error
            # The index was fine but the data is not: read on without the index, past what came already.
            scan = _scan(part.file)
            scan.summary()
            self._note(_loss(part.name, scan) or f"{part.name} is damaged: {error}")
            yield from scan.messages(topics, last + 1)

    def _add(self, name: str, file: Path) -> None:
        try:
            storage: _Storage = self._stack.enter_context(_Indexed(file))
            summary = storage.summary()
        except _DAMAGE as error:
            storage = _scan(file)
            try:
                summary = storage.summary()
            except (BagError, OSError, ValueError) as worse:
                self._note(f"{name} cannot be read: {worse}")
                return
            self._note(_loss(name, storage) or f"{name} was read without its index ({error})")
        self._parts.append(_Part(name, file, storage, summary))

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


class _Indexed:
    """An intact storage file, read by `rosbags` through its index."""

    def __init__(self, file: Path) -> None:
        self._reader = Reader(file)

    def __enter__(self) -> _Indexed:
        self._reader.open()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):
            self._reader.close()

    def summary(self) -> Summary:
        topics = []
        for connection in self._reader.connections:
            profiles = (
                connection.ext.offered_qos_profiles
                if isinstance(connection.ext, ConnectionExtRosbag2)
                else []
            )
            text = connection.msgdef.data if connection.msgdef.format == MessageDefinitionFormat.MSG else ""
            topics.append(
                Topic(
                    connection.topic,
                    full_type(connection.msgtype),
                    connection.msgcount,
                    text,
                    any(profile.durability == QosDurability.TRANSIENT_LOCAL for profile in profiles),
                    all(profile.reliability != QosReliability.BEST_EFFORT for profile in profiles),
                )
            )
        return Summary(tuple(topics), self._reader.start_time, self._reader.end_time - 1)

    def messages(self, topics: Collection[str], start: int) -> Iterator[Message]:
        connections = [each for each in self._reader.connections if each.topic in topics]
        if not connections:
            return
        for connection, time, data in self._reader.messages(connections, start=start or None):
            yield Message(connection.topic, full_type(connection.msgtype), time, bytes(data))


def _scan(file: Path) -> McapScan | SqliteScan:
    return McapScan(file) if file.suffix == ".mcap" else SqliteScan(file)


def _loss(name: str, scan: McapScan | SqliteScan) -> str | None:
    """What a scan could not read, as a sentence; None where nothing is missing."""
    if isinstance(scan, SqliteScan):
        if not scan.cut_off and not scan.messages_lost:
            return None
        return (
            f"{name} is cut off: recovered every complete message, {scan.messages_lost} begun ones are lost"
        )
    damage = scan.damage
    if not damage.cut_off and not damage.bytes_lost:
        return None
    how = "is cut off" if damage.cut_off else "is damaged"
    lost = f"{damage.bytes_lost} bytes could not be read" if damage.bytes_lost else "nothing readable is lost"
    chunks = f" ({damage.chunks_lost} damaged chunks skipped)" if damage.chunks_lost else ""
    return f"{name} {how}: recovered every complete message, {lost}{chunks}"
