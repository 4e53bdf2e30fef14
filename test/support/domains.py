"""A ROS domain id that no other test on this machine uses at the same time."""

from __future__ import annotations

import fcntl
import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Above 101 the DDS ports of a domain reach into Linux's range of ephemeral ports, where any program may sit.
DOMAIN_IDS = range(1, 102)


@contextmanager
def reserved_domain() -> Iterator[int]:
    """Hold a domain id for as long as the block runs.

    The reservation is a file lock, so that it holds between xdist workers and between separate test runs, and
    the kernel gives it back when the holder dies.
    """
    folder = Path(tempfile.gettempdir()) / "lla_fusion_ros_domains"
    folder.mkdir(exist_ok=True)
    # In random order: a domain that has just been left may still be heard of for a moment.
    for domain in random.sample(DOMAIN_IDS, len(DOMAIN_IDS)):
        handle = os.open(folder / str(domain), os.O_CREAT | os.O_RDWR, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            continue
        try:
            yield domain
        finally:
            os.close(handle)
        return
    raise RuntimeError(f"all ROS domain ids are taken; are old test runs alive? The locks are in {folder}")
