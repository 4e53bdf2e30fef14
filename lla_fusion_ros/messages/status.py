"""diagnostic_msgs/DiagnosticArray, vision_msgs/LabelInfo and VisionInfo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lla_fusion_ros.messages.cdr import CdrReader, CdrWriter, Header, Raw

OK, WARN, ERROR = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Status:
    """diagnostic_msgs/DiagnosticStatus."""

    level: int
    name: str
    message: str
    hardware_id: str = ""
    values: Mapping[str, str] = field(default_factory=dict)


def write_diagnostics(header: Header, statuses: Sequence[Status]) -> bytes:
    """diagnostic_msgs/DiagnosticArray."""
    writer = CdrWriter()
    writer.header(header)
    writer.u32(len(statuses))
    for status in statuses:
        writer.u8(status.level)
        writer.string(status.name)
        writer.string(status.message)
        writer.string(status.hardware_id)
        writer.u32(len(status.values))
        for key, value in status.values.items():
            writer.string(key)
            writer.string(value)
    return writer.message()


def parse_diagnostics(raw: Raw) -> tuple[Header, tuple[Status, ...]]:
    """diagnostic_msgs/DiagnosticArray from its bytes."""
    reader = CdrReader(raw)
    header = reader.header()
    statuses = []
    for _ in range(reader.count(17)):
        level = reader.u8()
        name, message, hardware_id = reader.string(), reader.string(), reader.string()
        values = {}
        for _ in range(reader.count(8)):
            key = reader.string()
            values[key] = reader.string()
        statuses.append(Status(level, name, message, hardware_id, values))
    return header, tuple(statuses)


def write_label_info(header: Header, class_names: Sequence[str], threshold: float = 0.0) -> bytes:
    """vision_msgs/LabelInfo: the name behind each class number."""
    writer = CdrWriter()
    writer.header(header)
    writer.u32(len(class_names))
    for index, name in enumerate(class_names):
        writer.u16(index)
        writer.string(name)
    writer.f32(threshold)
    return writer.message()


def parse_label_info(raw: Raw) -> tuple[str, ...]:
    """The names of a vision_msgs/LabelInfo by number; a number without a name is its own."""
    reader = CdrReader(raw)
    reader.header()
    names = {}
    for _ in range(reader.count(7)):
        number = reader.u16()
        names[number] = reader.string()
    return tuple(names.get(number, str(number)) for number in range(max(names, default=-1) + 1))


def write_vision_info(header: Header, method: str, database_location: str, database_version: int) -> bytes:
    """vision_msgs/VisionInfo: which model the views beside it come from."""
    writer = CdrWriter()
    writer.header(header)
    writer.string(method)
    writer.string(database_location)
    writer.i32(database_version)
    return writer.message()


def parse_vision_info(raw: Raw) -> tuple[Header, str, str, int]:
    """Header, method, database_location and database_version of a vision_msgs/VisionInfo."""
    reader = CdrReader(raw)
    return reader.header(), reader.string(), reader.string(), reader.u32()
