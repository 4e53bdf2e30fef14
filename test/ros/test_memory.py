"""What glibc does once it was told to keep to one heap, seen from outside in a process of its own."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# Threads that each hold some blocks of memory; the number of heaps is what malloc_info says.
SCRIPT = """
import ctypes, re, sys, tempfile, threading
from lla_fusion_ros.ros.memory import share_one_heap

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


def heaps(how: str) -> int:
    run = subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, check=True)
    return int(run.stdout.split()[-1])


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is glibc's")
def test_all_threads_share_one_heap_where_told_to() -> None:
    assert heaps("many") > 1
    assert heaps("one") == 1
