"""What glibc does once it was told how to deal with memory, in processes of their own."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

glibc_only = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the settings are glibc's")

# Threads that each hold some blocks of memory; the number of heaps is what malloc_info says.
HEAPS = """
import ctypes, re, sys, tempfile, threading
from lla_fusion_ros.types.memory import share_one_heap

if sys.argv[1] == "one":
    assert share_one_heap()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
together = threading.Barrier(9)

def hold():
    for _ in range(50):
        libc.malloc(ctypes.c_size_t(20_000))  # the GIL is not held: the threads meet in malloc
    together.wait()

threads = [threading.Thread(target=hold) for _ in range(8)]
for thread in threads:
    thread.start()
together.wait()
libc.fopen.restype = ctypes.c_void_p
with tempfile.NamedTemporaryFile() as file:
    stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    print(len(re.findall(rb"<heap nr", open(file.name, "rb").read())))
"""

# The same large array again and again; a page fault for every page that the kernel had to clear.
FAULTS = """
import resource, sys
from lla_fusion_ros.types.memory import keep_freed_memory

if sys.argv[1] == "kept":
    assert keep_freed_memory()
import numpy as np

def use():
    np.ones(4_000_000)

use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def told(script: str, how: str) -> int:
    run = subprocess.run([sys.executable, "-c", script, how], capture_output=True, text=True, check=True)
    return int(run.stdout.split()[-1])


@glibc_only
def test_all_threads_share_one_heap_where_told_to() -> None:
    assert told(HEAPS, "many") > 1
    assert told(HEAPS, "one") == 1


@glibc_only
def test_freed_memory_is_used_again_where_told_to() -> None:
    assert told(FAULTS, "kept") < 0.1 * told(FAULTS, "returned")
