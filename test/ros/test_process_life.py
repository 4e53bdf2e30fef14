"""How processes begin: ready for images that come and go."""

from __future__ import annotations

import platform

import pytest

IMAGES = """
import resource
from lla_fusion_ros.ros.process_life import begin

begin()
size, frames = 6 << 20, 50
for frame in range(frames + 2):
    if frame == 2:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    image = [b"x" * size for _ in range(2)]
    del image
pages = frames * 2 * size // resource.getpagesize()
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(f"{faults} page faults for {pages} pages:", "kept" if faults < 0.02 * pages else "fetched again")
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc that hands memory back")
def test_the_memory_of_large_images_is_kept_for_the_next_ones(ros_process):
    process = ros_process(IMAGES, name="images")
    assert process.wait() == 0, process.log
    assert "kept" in process.log, process.log
