"""Signs of the sign world as boxes in space."""

from __future__ import annotations

import numpy as np

from lla_fusion_ros.messages.cdr import CdrWriter, Header


def boxes_in_space(stamp: int, frame_id: str, things) -> bytes:
    """vision_msgs/Detection3DArray of signs."""
    writer = CdrWriter()
    writer.header(Header(stamp, frame_id))
    writer.u32(len(things))
    for thing in things:
        writer.header(Header(stamp, frame_id))
        writer.u32(0)
        x, y, z = thing.position
        writer.align(8)
        numbers = (z, -x, y, 0, 0, 0, 1, 0.05, thing.side, thing.side)
        writer.raw(np.array(numbers, "<f8").tobytes())
        writer.string(f"object {thing.id}")
    return writer.message()
