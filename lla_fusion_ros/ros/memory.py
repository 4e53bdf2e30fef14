"""Keep a node's memory where it is: one heap for all of its threads."""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8  # of glibc's malloc.h


def share_one_heap() -> bool:
    """Let all threads allocate from one heap; before the first thread starts. False where libc has no say.

    glibc gives every thread a heap of its own. Pixels that one thread allocates and another frees can then
    leave holes that only the first can fill; docs/robustness.md has a run of each kind. Small blocks come
    from each thread's cache as before.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # another libc
        return False
    return bool(mallopt(_M_ARENA_MAX, 1))
