"""Names from outside as they may be shown, stand in a table, and be names of files."""

from __future__ import annotations

import hashlib
import re

_UNUSUAL = re.compile(r"[^ -~]")
_NOT_IN_FILES = re.compile(r"^[ .]|[ .]$|[^\w.+ -]")
_LONGEST_FILE = 100  # bytes: two names and an ending are less than the 255 of file systems
_HASH = 10


def printable(text: str) -> str:
    """Text of one line that may hold names from files: what would steer a terminal is shown as an escape."""
    return _UNUSUAL.sub(
        lambda c: c[0] if c[0].isprintable() else c[0].encode("unicode_escape").decode(), text
    )


def escaped(name: str) -> str:
    """A name for a table: printable, and another one for every name, so backslashes are doubled."""
    return printable(name.replace("\\", "\\\\"))


def file_name(name: str) -> str:
    """A name as that of a file: not hidden, in no other folder, and another one for every name.

    All but letters, digits, inner spaces and `_.+-` is percent-encoded; a long name is cut, with its hash.
    """
    safe = _NOT_IN_FILES.sub(
        lambda c: "".join(f"%{byte:02X}" for byte in c[0].encode("utf8", "surrogatepass")), name
    ).encode()
    if len(safe) > _LONGEST_FILE:
        digest = hashlib.sha256(name.encode("utf8", "surrogatepass")).hexdigest()[:_HASH]
        return f"{safe[: _LONGEST_FILE - _HASH - 1].decode(errors='ignore')}~{digest}"
    return safe.decode() or "%"
