"""How a process deals with memory: what glibc's malloc is told before the work begins."""

from __future__ import annotations

import ctypes

# Of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -4, -8
_NEVER = 2**31 - 1


def share_one_heap() -> bool:
    """Let all threads allocate from one heap; before the first thread starts. False where libc has no say.

    glibc gives every thread a heap of its own. Pixels that one thread allocates and another frees can then
    leave holes that only the first can fill.
    """
    return _told((_M_ARENA_MAX, 1))


def keep_freed_memory() -> bool:
    """Keep what is freed for the next array; for work on large arrays. False where libc has no say.

    glibc asks the kernel for every large array and gives it back at once. Its pages are then cleared again
    for each: more than half of the time of a fit over all validation tracks.
    """
    return _told((_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, _NEVER))


def _told(*options: tuple[int, int]) -> bool:
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # another libc
        return False
    return all([bool(mallopt(*option)) for option in options])
