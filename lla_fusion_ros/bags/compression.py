"""zstd and lz4 as bags use them, including streams that end in the middle and those made to fill a machine.

A few bytes can unpack to terabytes, so every unpacking here is bounded, also the one inside `rosbags`.
"""

from __future__ import annotations

import sys

import lz4.frame
from rosbags.rosbag2 import storage_mcap

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZstdError = zstd.ZstdError
open_zstd = zstd.open
# The largest image a camera may send (crops.MAX_PIXELS, 4 bytes each); recorders cut chunks at a few MB.
MOST_BYTES = 256_000_000


def plain_message(data: bytes) -> bytes:
    """A message as CDR; a compressed one is told by its first bytes, which no CDR header equals."""
    if data[:4] != ZSTD_MAGIC:
        return data
    message = inflate(data, "zstd", MOST_BYTES)
    if not message:
        raise ValueError("a compressed message is cut off")
    return message


def inflate(data: bytes, method: str, size: int) -> bytes:
    """As much of a compressed block as can be had: a cut-off block gives its beginning.

    Args:
        size: how many bytes the block says it holds; one that holds more, or too many, is refused.
    """
    if size > MOST_BYTES:
        raise ValueError(f"a compressed block claims {size} bytes, more than {MOST_BYTES}")
    if method == "zstd":
        plain = zstd.ZstdDecompressor().decompress(data, size + 1)
    elif method == "lz4":
        plain = lz4.frame.LZ4FrameDecompressor().decompress(data, size + 1)
    elif method == "":
        return data
    else:
        raise ValueError(f"unknown compression '{method[:20]}'")
    if len(plain) > size:
        raise ValueError(f"a compressed block holds more than the {size} bytes it claims")
    return plain


# `rosbags` unpacks the chunks of an intact file by this table, without a bound of its own.
storage_mcap.DECOMPRESSORS.update(
    {method: lambda data, size, method=method: inflate(data, method, size) for method in ("zstd", "lz4")}
)
