"""The file itself: safetensors with one JSON document and a SHA-256 over everything.

Nothing here knows what a bundle means. Reading never runs code: the header is JSON, the rest is numbers.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as dump_tensors

from lla_fusion_ros.errors import BundleError

FORMAT = "lla_fusion_ros bundle"
VERSION = 2
_ENTRY = "lla_fusion_ros"
_LARGEST_HEADER = 64 * 1024 * 1024
_LARGEST_FILE = 4 * 1024**3  # the whole file is read into memory; a vehicle's model has megabytes


def write_container(path: Path, document: dict[str, Any], tensors: dict[str, np.ndarray]) -> str:
    """Write the file in one step (a reader sees the old file or the new one) and return its hash."""
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, allow_nan=False)
    tensors = {name: np.ascontiguousarray(tensors[name]) for name in sorted(tensors)}
    digest = content_hash(text, tensors)
    header = {"format": FORMAT, "version": VERSION, "sha256": digest, "bundle": text}
    # one entry: safetensors writes several in random order, and equal bundles should be equal files
    data = dump_tensors(tensors, metadata={_ENTRY: json.dumps(header)})
    _replace_file(path, data)
    return digest


def read_container(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray], str]:
    """The JSON document, the tensors and the hash; BundleError says what is wrong with the file."""
    header, data = _read_file(path)
    try:
        tensors = parse_tensors(data)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise BundleError(f"bundle '{path}' is truncated or altered: {error}") from None
    text = header["bundle"]
    if content_hash(text, tensors) != header.get("sha256"):
        raise BundleError(
            f"bundle '{path}' was altered: its content does not match its SHA-256; copy it again"
        )
    try:
        return _parse_json(text), tensors, header["sha256"]
    except (ValueError, RecursionError) as error:
        raise BundleError(f"bundle '{path}' was altered: its metadata is no JSON ({error})") from None


def read_document(path: Path) -> dict[str, Any]:
    """The JSON document alone, from the head of the file; nothing is checked against the hash."""
    try:
        with path.open("rb") as file:
            return _parse_json(_header(path, file)["bundle"])
    except (OSError, ValueError, RecursionError) as error:
        raise BundleError(f"bundle '{path}' cannot be read: {error}") from None


def content_hash(text: str, tensors: dict[str, np.ndarray]) -> str:
    """SHA-256 over the document and every tensor's name, type, shape and bytes."""
    digest = hashlib.sha256(f"{FORMAT}\0{VERSION}\0{text}\0".encode("utf-8", "surrogatepass"))
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        digest.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _read_file(path: Path) -> tuple[dict[str, Any], bytes]:
    """The package's own header, and the whole file; what is no bundle is refused by its first bytes."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():  # a pipe or device would never end
            raise BundleError(f"bundle '{path}' is no regular file")
        with path.open("rb") as file:
            header = _header(path, file)
            file.seek(0)
            return header, file.read()
    except FileNotFoundError:
        raise BundleError(f"bundle '{path}' does not exist") from None
    except OSError as error:
        raise BundleError(f"bundle '{path}' cannot be read: {error.strerror}") from None


def _header(path: Path, file: BinaryIO) -> dict[str, Any]:
    """The metadata of a safetensors file that this package wrote, if the file is as long as it says."""
    size = os.fstat(file.fileno()).st_size
    start = file.read(9)
    if len(start) < 8:
        raise BundleError(f"bundle '{path}' is truncated: it has only {len(start)} bytes")
    (length,) = struct.unpack("<Q", start[:8])
    if not 2 <= length <= _LARGEST_HEADER or start[8:] != b"{":
        raise BundleError(f"'{path}' is not a bundle: it is no safetensors file")
    if length > size - 8:
        raise BundleError(f"bundle '{path}' is truncated: its header alone needs {length + 8} bytes")
    try:
        entries = _parse_json((b"{" + file.read(length - 1)).decode("utf-8"))
        metadata = entries.pop("__metadata__", None)
        foreign = not isinstance(metadata, dict) or _ENTRY not in metadata
        header = {} if foreign else _parse_json(metadata[_ENTRY])
        strange = not foreign and (not isinstance(header, dict) or not isinstance(header.get("bundle"), str))
        end = 8 + length + max((entry["data_offsets"][1] for entry in entries.values()), default=0)
        strange = strange or not isinstance(end, int)
    except (ValueError, RecursionError, AttributeError, TypeError, LookupError) as error:
        raise BundleError(f"bundle '{path}' was altered: its header cannot be read ({error})") from None
    if foreign:
        raise BundleError(f"'{path}' is a safetensors file, but not a bundle of lla_fusion_ros")
    if strange or header.get("format") != FORMAT:
        raise BundleError(f"bundle '{path}' was altered: its header cannot be read")
    if header.get("version") != VERSION:
        raise BundleError(
            f"bundle '{path}' has format version {header.get('version')}, "
            f"this package reads version {VERSION}; train it again or install the matching package"
        )
    if size != end or size > _LARGEST_FILE:
        raise BundleError(
            f"bundle '{path}' is truncated or altered: it has {size} bytes, its header asks for {end} "
            f"(at most {_LARGEST_FILE}); copy it again"
        )
    return header


def _parse_json(text: str) -> Any:
    """JSON in which every key stands once: of two, each reader would believe another one."""
    return json.loads(text, object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key '{twice[:60]}' stands twice")
    return found


def _replace_file(path: Path, data: bytes) -> None:
    folder = path.parent
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=folder)
    except OSError as error:
        raise BundleError(f"bundle '{path}' cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)  # mkstemp gives 0600; a model file is for everybody
        os.replace(name, path)
    except OSError as error:
        os.unlink(name)
        raise BundleError(f"bundle '{path}' cannot be written: {error.strerror}") from None
