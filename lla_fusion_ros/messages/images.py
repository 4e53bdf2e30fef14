"""sensor_msgs/Image and CompressedImage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lla_fusion_ros.images.crops import Pixels, decode_compressed, decode_image
from lla_fusion_ros.messages.cdr import CdrReader, CdrWriter, Header, Raw
from lla_fusion_ros.types.errors import InputError


@dataclass(frozen=True, slots=True)
class ImageMessage:
    """sensor_msgs/Image; `data` is a view of the message's bytes."""

    header: Header
    height: int
    width: int
    encoding: str
    is_bigendian: bool
    step: int
    data: memoryview

    @property
    def nbytes(self) -> int:
        return len(self.data)

    def pixels(self) -> Pixels:
        """The image, for the plain encodings without a copy; InputError names what does not fit."""
        return decode_image(self.encoding, self.height, self.width, self.step, self.is_bigendian, self.data)


@dataclass(frozen=True, slots=True)
class CompressedImageMessage:
    """sensor_msgs/CompressedImage; `data` is a view of the message's bytes."""

    header: Header
    format: str
    data: memoryview

    @property
    def nbytes(self) -> int:
        return len(self.data)

    def pixels(self) -> Pixels:
        """The decoded image; InputError names what does not fit."""
        return decode_compressed(self.data, self.format)


def parse_image(raw: Raw) -> ImageMessage:
    """sensor_msgs/Image from its bytes."""
    reader = CdrReader(raw)
    header = reader.header()
    height, width = reader.u32(), reader.u32()
    encoding = reader.string()
    is_bigendian = bool(reader.u8())
    step = reader.u32()
    return ImageMessage(header, height, width, encoding, is_bigendian, step, reader.take(reader.u32()))


def parse_compressed_image(raw: Raw) -> CompressedImageMessage:
    """sensor_msgs/CompressedImage from its bytes."""
    reader = CdrReader(raw)
    header = reader.header()
    return CompressedImageMessage(header, reader.string(), reader.take(reader.u32()))


def write_image(header: Header, array: np.ndarray, encoding: str) -> bytes:
    """sensor_msgs/Image of an array whose rows lie without padding.

    Args:
        array: [height, width] or [height, width, channels]
    """
    array = np.ascontiguousarray(array)
    writer = CdrWriter()
    writer.header(header)
    writer.u32(array.shape[0])
    writer.u32(array.shape[1])
    writer.string(encoding)
    writer.u8(0)
    row_bytes = array.itemsize * int(np.prod(array.shape[1:]))
    writer.u32(row_bytes)
    writer.u32(array.nbytes)
    writer.raw(array.reshape(-1).view(np.uint8).data)
    return writer.message()


def write_compressed_image(header: Header, data: bytes, format: str) -> bytes:
    """sensor_msgs/CompressedImage of an encoded file."""
    writer = CdrWriter()
    writer.header(header)
    writer.string(format)
    writer.u32(len(data))
    writer.raw(data)
    return writer.message()


def matrix_of(message: ImageMessage) -> np.ndarray:
    """The numbers of a 32FC1 image, such as the embeddings of a frame.  [height, width] float32"""
    if message.encoding != "32FC1":
        raise InputError(f"image encoding '{message.encoding[:40]}' is not 32FC1")
    used = message.width * 4
    if message.height == 0:
        return np.zeros((0, message.width), np.float32)
    if message.step < used or len(message.data) < message.step * message.height:
        raise InputError(
            f"32FC1 image of {message.height} rows of {message.step} bytes has {len(message.data)} bytes"
        )
    rows = np.frombuffer(message.data, np.uint8)[: message.step * message.height]
    rows = np.ascontiguousarray(rows.reshape(message.height, message.step)[:, :used])
    return rows.view(">f4" if message.is_bigendian else "<f4").astype(np.float32, copy=False)
