"""Reading and writing of plain CDR (XCDR1), the encoding of ROS 2 messages; every read is bounds-checked."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.types.errors import InputError

Raw = bytes | bytearray | memoryview

LITTLE_ENDIAN_HEADER = b"\x00\x01\x00\x00"
NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Header:
    """std_msgs/Header; `stamp` in nanoseconds."""

    stamp: int
    frame_id: str


MOST_PADDING = 7  # bytes a middleware may add after the last field


class CdrReader:
    """Walks through the bytes of one message; anything that does not fit raises InputError.

    Offsets count from the end of the 4-byte encapsulation header, as CDR's alignment does.
    """

    __slots__ = ("_body", "_byte_order", "at")

    def __init__(self, data: Raw) -> None:
        view = memoryview(data)
        if len(view) < 4 or view[0] != 0 or view[1] > 1:
            raise InputError(f"message of {len(view)} bytes does not begin with a plain CDR header")
        self._byte_order = "<" if view[1] == 1 else ">"
        self._body = view[4:]
        self.at = 0

    @property
    def remaining(self) -> int:
        return len(self._body) - self.at

    def finish(self) -> None:
        """InputError where the message goes on: it is of another type."""
        if self.remaining > MOST_PADDING:
            raise InputError(
                f"message has {self.remaining} bytes more than its type: its definition is another one"
            )

    def align(self, to: int) -> None:
        self.at += -self.at % to

    def skip(self, count: int) -> None:
        """Step over bytes that must be there."""
        if count > self.remaining:
            raise InputError(f"message ends {count - self.remaining} bytes early")
        self.at += count

    def take(self, count: int) -> memoryview:
        """The next bytes, without a copy."""
        start = self.at
        self.skip(count)
        return self._body[start : self.at]

    def u8(self) -> int:
        return self.take(1)[0]

    def u16(self) -> int:
        self.align(2)
        return int(struct.unpack(self._byte_order + "H", self.take(2))[0])

    def u32(self) -> int:
        self.align(4)
        return int(struct.unpack(self._byte_order + "I", self.take(4))[0])

    def f64(self, count: int) -> np.ndarray:
        """The next `count` doubles.  [count]"""
        self.align(8)
        return np.frombuffer(self.take(8 * count), self._byte_order + "f8")

    def u32_column(self, start: int, stride: int, count: int) -> np.ndarray | None:
        """`count` unsigned integers, `stride` bytes apart, or None where the message is too short."""
        if start + stride * count > len(self._body):
            return None
        block = np.frombuffer(self._body[start : start + stride * count], np.uint8).reshape(count, stride)
        return np.ascontiguousarray(block[:, :4]).view(self._byte_order + "u4")[:, 0]

    def count(self, least_bytes: int) -> int:
        """The length of a sequence whose elements take at least `least_bytes` each."""
        count = self.u32()
        if count * least_bytes > self.remaining:
            raise InputError(f"message claims {count} elements but has {self.remaining} bytes left")
        return count

    def string(self) -> str:
        """Text; bytes that are no UTF-8 survive a later `CdrWriter.string` unchanged."""
        length = self.u32()
        if length == 0:  # some implementations write the empty string without its terminator
            return ""
        raw = self.take(length)
        if raw[-1] != 0:
            raise InputError("a string in the message has no terminator")
        return str(raw[:-1], "utf-8", "surrogateescape")

    def skip_string(self) -> None:
        self.skip(self.u32())

    def header(self) -> Header:
        seconds, nanoseconds = struct.unpack(self._byte_order + "iI", self.take(8))
        if nanoseconds >= NANOSECONDS:  # what it means is anybody's guess, and it could not be written again
            raise InputError(
                f"the stamp of the message has {nanoseconds} nanoseconds, a second has {NANOSECONDS}"
            )
        return Header(seconds * NANOSECONDS + nanoseconds, self.string())


_PADDING = [bytes(count) for count in range(8)]
_U32 = struct.Struct("<I")


class CdrWriter:
    """Collects the bytes of one little-endian message."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray(LITTLE_ENDIAN_HEADER)

    @property
    def size(self) -> int:
        """Bytes after the encapsulation header, from which alignment counts."""
        return len(self._buffer) - 4

    def raw(self, part: bytes | memoryview) -> None:
        """Bytes as they are; a memoryview must be one-dimensional and of bytes."""
        self._buffer += part

    def align(self, to: int) -> None:
        self._buffer += _PADDING[-self.size % to]

    def u8(self, value: int) -> None:
        self._buffer.append(value)

    def u16(self, value: int) -> None:
        self.align(2)
        self._buffer += struct.pack("<H", value)

    def u32(self, value: int) -> None:
        self._buffer += _PADDING[-len(self._buffer) % 4] + _U32.pack(value)

    def i32(self, value: int) -> None:
        self.align(4)
        self._buffer += struct.pack("<i", value)

    def f32(self, value: float) -> None:
        self.align(4)
        self._buffer += struct.pack("<f", value)

    def string(self, text: str) -> None:
        # the most frequent call by far, hence in one go; the header is 4 bytes, so counting it does no harm
        encoded = text.encode("utf-8", "surrogateescape")
        self._buffer += _PADDING[-len(self._buffer) % 4] + _U32.pack(len(encoded) + 1) + encoded + b"\0"

    def header(self, header: Header) -> None:
        seconds, nanoseconds = divmod(header.stamp, NANOSECONDS)
        if not -(2**31) <= seconds < 2**31:
            raise InputError(f"stamp {header.stamp} ns does not fit builtin_interfaces/Time")
        self.align(4)
        self._buffer += struct.pack("<iI", seconds, nanoseconds)
        self.string(header.frame_id)

    def message(self) -> bytes:
        return bytes(self._buffer)
