"""Views in, fused frames out: the fusion engine, frame by frame, with its losses counted by camera."""

from __future__ import annotations

from collections.abc import Sequence

from lla_fusion_ros.engine import FusionEngine, Observation
from lla_fusion_ros.errors import InputError
from lla_fusion_ros.stream.frames import FusedFrame, ViewFrame
from lla_fusion_ros.stream.tally import Tally


class FuseStage:
    """The engine in the order of arrival. A frame that does not fit is counted and changes nothing."""

    def __init__(self, engine: FusionEngine, tally: Tally) -> None:
        self.engine = engine
        self._tally = tally

    def __call__(self, frames: Sequence[ViewFrame]) -> list[FusedFrame]:
        """One FusedFrame for each frame that was fused or ended a warning; a late frame, of which nothing
        was used, has none."""
        return [fused for fused in map(self._fuse, frames) if fused is not None]

    def _fuse(self, frame: ViewFrame) -> FusedFrame | None:
        observation = Observation(frame.camera, frame.header.stamp, frame.ids, frame.views)
        try:
            result = self.engine.update(observation)
        except InputError:
            self._tally.drop(frame.camera, {"bad_views": 1})
            self._tally.add(frame.camera, "unused_frames")
            return None
        if result.dropped:
            self._tally.drop(frame.camera, result.dropped)
        if result.jumped:
            self._tally.add(frame.camera, "clock_jumps")
        if result.switched:
            self._tally.add(frame.camera, "identity_switches", len(result.switched))
        if result.dropped and not len(result.kept) and not result.cleared:
            self._tally.add(frame.camera, "unused_frames")  # what it held is counted by reason
            return None
        self._tally.add(frame.camera, "fused_frames")
        self._tally.add(frame.camera, "fused_views", len(result.kept))
        return FusedFrame(frame, result)
