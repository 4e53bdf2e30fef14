"""Small inputs that claim, or unpack to, more than a machine has; run as a program under a limit of memory.

`python -m fuzz.bombs` gives every bomb to its target with little memory left, and prints what became of it.
"""

from __future__ import annotations

import gzip
import io
import json
import resource
import struct
from collections.abc import Iterator
from pathlib import Path

import lz4.frame

from fuzz import seeds
from fuzz.targets import TARGETS
from lla_fusion_ros.bags.compression import zstd
from lla_fusion_ros.bags.scan_mcap import CHANNEL, CHUNK, MAGIC, MESSAGE, SCHEMA
from lla_fusion_ros.bundle.container import FORMAT, VERSION
from lla_fusion_ros.messages.cdr import CdrWriter

BLOCK = bytes(32 * 1024 * 1024)
BLOCKS = 20  # 0.7 GB of zeros
UNPACKED = BLOCKS * len(BLOCK)
SPARE = 600_000_000  # bytes that may be allocated beside what Python and its libraries take


def zstd_bomb() -> bytes:
    packer = zstd.ZstdCompressor(level=1)
    return b"".join(packer.compress(BLOCK) for _ in range(BLOCKS)) + packer.flush()


def lz4_bomb() -> bytes:
    packer = lz4.frame.LZ4FrameCompressor()
    return packer.begin() + b"".join(packer.compress(BLOCK) for _ in range(BLOCKS)) + packer.flush()


def gzip_bomb(head: bytes) -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as packer:
        packer.write(head)
        for _ in range(BLOCKS):
            packer.write(BLOCK)
    return out.getvalue()


def _record(kind: int, content: bytes) -> bytes:
    return struct.pack("<BQ", kind, len(content)) + content


def _text(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode()


def mcap_with_chunk(packed: bytes, method: str, size: int) -> bytes:
    head = struct.pack("<QQQI", 0, 1, size, 0) + _text(method) + struct.pack("<Q", len(packed))
    return MAGIC + _record(1, _text("ros2") + _text("")) + _record(CHUNK, head + packed)


def mcap_with_message(data: bytes) -> bytes:
    schema = struct.pack("<H", 1) + _text("sensor_msgs/msg/Image") + _text("ros2msg") + _text("")
    channel = struct.pack("<HH", 1, 1) + _text("/front/image") + _text("cdr") + struct.pack("<I", 0)
    message = struct.pack("<HIQQ", 1, 0, 5, 5) + data
    return MAGIC + _record(SCHEMA, schema) + _record(CHANNEL, channel) + _record(MESSAGE, message)


def png_of(width: int, height: int) -> bytes:
    file = bytearray(seeds.picture_files()[1])
    file[16:24] = struct.pack(">II", width, height)
    return bytes(file)


def jpeg_of(width: int, height: int) -> bytes:
    file = bytearray(seeds.picture_files()[0])
    at = file.index(b"\xff\xc0")
    file[at + 5 : at + 9] = struct.pack(">HH", height, width)
    return bytes(file)


def image_of(height: int, width: int, step: int, encoding: str) -> bytes:
    writer = CdrWriter()
    writer.header(seeds.HEADER)
    writer.u32(height)
    writer.u32(width)
    writer.string(encoding)
    writer.u8(0)
    writer.u32(step)
    writer.u32(0)
    return writer.message()


def safetensors_of(shape: list[int], end: int) -> bytes:
    entry = {"format": FORMAT, "version": VERSION, "sha256": "0" * 64, "bundle": "{}"}
    header = {
        "__metadata__": {"lla_fusion_ros": json.dumps(entry)},
        "w": {"dtype": "F32", "shape": shape, "data_offsets": [0, end]},
    }
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(16)


def bombs() -> Iterator[tuple[str, str, bytes]]:
    """Target, what it is, bytes."""
    packed = zstd_bomb()
    for size in (UNPACKED, 1000, 2**63):
        yield "bag_mcap", f"zstd chunk that claims {size}", mcap_with_chunk(packed, "zstd", size)
    yield "bag_mcap", "compressed message", mcap_with_message(packed)
    packed = lz4_bomb()
    for size in (UNPACKED, 1000):
        yield "bag_mcap", f"lz4 chunk that claims {size}", mcap_with_chunk(packed, "lz4", size)
    yield "bag_mcap", "record of 2^62 bytes", MAGIC + struct.pack("<BQ", MESSAGE, 2**62) + bytes(30)
    for size in (5, 2**27, 2**31):
        head = bytes([0, 0, 8, 1]) + struct.pack(">I", size)
        yield "idx_gz", f"gzip that claims {size}", gzip_bomb(head)
    for width, height in ((50_000, 50_000), (65_535, 900), (2**31, 2**31)):
        yield "jpeg_or_png", f"png of {width} x {height}", png_of(width, height)
        yield "jpeg_or_png", f"jpeg of {width} x {height}", jpeg_of(width % 65_536, height % 65_536)
        yield "image_file", f"png file of {width} x {height}", png_of(width, height)
    yield "image", "100 megapixels without data", image_of(10_000, 10_000, 30_000, "bgr8")
    yield "image", "2^32 rows", image_of(2**32 - 1, 2**32 - 1, 2**32 - 1, "mono8")
    yield "embeddings", "2^32 rows of embeddings", image_of(2**32 - 1, 14, 56, "32FC1")
    yield "bundle", "tensor of 4 TB", safetensors_of([2**40], 2**42)
    yield "bundle", "tensor of no bytes and 2^80 numbers", safetensors_of([2**40, 2**40, 0], 0)
    yield "bundle", "header of 2^60 bytes", struct.pack("<Q", 2**60) + b"{" + bytes(64)


def main() -> None:
    prepared = list(bombs())
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + SPARE, in_use + SPARE))
    for target, what, data in prepared:
        accepted = TARGETS[target](data)
        print("accepted" if accepted else "refused", target, what, sep="\t", flush=True)


if __name__ == "__main__":
    main()
