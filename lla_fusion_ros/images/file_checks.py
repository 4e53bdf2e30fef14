"""What JPEG and PNG files claim to hold, looked at before a decoder makes room for it."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.types.errors import InputError

# A header that claims more is a fault, not a camera; checked before anything is allocated.
MAX_PIXELS = 64_000_000
# No file of a camera packs more pixels into a byte, or comes in more passes (progressive JPEG); those that
# claim to are made to keep a decoder busy. Images up to SMALL pixels are decoded whatever they claim.
MAX_PIXELS_PER_BYTE = 2048
SMALL = 1_000_000
MAX_SCANS = 100
JPEG_MAGIC = b"\xff\xd8\xff"
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
MAX_PNG_CHUNKS = 10_000


def check_picture_file(flat: np.ndarray) -> None:
    """Refuse a JPEG or PNG that ends early or claims to be larger than it can be; another format, too."""
    width, height = _compressed_size(flat)
    most = min(MAX_PIXELS, max(SMALL, MAX_PIXELS_PER_BYTE * len(flat)))
    if width == 0 or height == 0 or width * height > most:
        raise InputError(f"compressed image of {len(flat)} bytes claims {width} x {height} pixels")


def _compressed_size(flat: np.ndarray) -> tuple[int, int]:
    """Width and height from the file's header, so that a lying header never makes a decoder allocate."""
    head = flat[:24].tobytes()
    tail = flat[-64:].tobytes()
    if head.startswith(PNG_MAGIC):
        return _png_size(flat.tobytes())
    if head.startswith(JPEG_MAGIC):
        if b"\xff\xd9" not in tail:  # some cameras pad after the end marker
            raise InputError(f"jpeg of {len(flat)} bytes ends early")
        if (scans := flat.tobytes().count(b"\xff\xda")) > MAX_SCANS:
            raise InputError(f"jpeg of {len(flat)} bytes comes in {scans} passes")
        return _jpeg_size(flat)
    raise InputError(f"compressed image of {len(flat)} bytes is neither jpeg nor png")


def _png_size(data: bytes) -> tuple[int, int]:
    """Walk all chunks, since OpenCV makes room for what any of them claims to hold before it looks."""
    size, at, chunks = (0, 0), len(PNG_MAGIC), 0
    while at + 12 <= len(data) and chunks < MAX_PNG_CHUNKS:
        length, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        if at + 12 + length > len(data):
            break
        if (kind == b"IHDR") != (chunks == 0) or kind in (b"acTL", b"fcTL", b"fdAT"):
            raise InputError(f"png of {len(data)} bytes is no single picture")
        if kind == b"IHDR":
            size = (
                int.from_bytes(data[at + 8 : at + 12], "big"),
                int.from_bytes(data[at + 12 : at + 16], "big"),
            )
        if kind == b"IEND":
            return size
        at, chunks = at + 12 + length, chunks + 1
    raise InputError(f"png of {len(data)} bytes ends early")


def _jpeg_size(flat: np.ndarray) -> tuple[int, int]:
    """Walk the marker segments to the frame header (SOF)."""
    at = 2
    while at + 9 < len(flat):
        if flat[at] != 0xFF:
            break
        marker = int(flat[at + 1])
        if marker == 0xFF:  # fill byte
            at += 1
            continue
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height = int(flat[at + 5]) << 8 | int(flat[at + 6])
            width = int(flat[at + 7]) << 8 | int(flat[at + 8])
            return width, height
        at += 2 + (int(flat[at + 2]) << 8 | int(flat[at + 3]))
    raise InputError(f"jpeg of {len(flat)} bytes has no frame header")
