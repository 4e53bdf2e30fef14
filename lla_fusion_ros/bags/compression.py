"""zstd and lz4 as bags use them, including streams that end in the middle."""

from __future__ import annotations

import sys

import lz4.frame

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZstdError = zstd.ZstdError
open_zstd = zstd.open


def plain_message(data: bytes) -> bytes:
    """A message as CDR; a compressed one is told by its first bytes, which no CDR header equals."""
    return zstd.decompress(data) if data[:4] == ZSTD_MAGIC else data


def inflate(data: bytes, method: str) -> bytes:
    """As much of a compressed block as can be had: a cut-off block gives its beginning."""
    if method == "zstd":
        return zstd.ZstdDecompressor().decompress(data)
    if method == "lz4":
        return lz4.frame.LZ4FrameDecompressor().decompress(data)
    if method == "":
        return data
    raise ValueError(f"unknown compression '{method}'")
