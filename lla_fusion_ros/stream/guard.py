"""A frame that breaks something must not cost the other frames of its batch, least of all other cameras'."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from lla_fusion_ros.stream.frames import CameraFrame, CropFrame, FusedFrame, ViewFrame
from lla_fusion_ros.types.tally import Tally

Frame = TypeVar("Frame", CameraFrame | CropFrame, ViewFrame)
Done = TypeVar("Done")
Ready = FusedFrame | ViewFrame
Tell = Callable[[Exception], None]


class Guard:
    """Runs a stage, and where it raises leaves out only the frame at fault: counted, and told of.

    Args:
        tell: gets the exception; a stage lets none through that outside data should cause.
    """

    def __init__(self, tally: Tally, tell: Tell) -> None:
        self._tally = tally
        self._tell = tell

    def batch(self, stage: Callable[[Sequence[Frame]], list[Done]], frames: Sequence[Frame]) -> list[Done]:
        """All frames at once, which is fast; one by one where that fails. The stage must have no memory."""
        try:
            return stage(frames)
        except Exception:
            return self.one_by_one(stage, frames)

    def one_by_one(
        self, stage: Callable[[Sequence[Frame]], list[Done]], frames: Sequence[Frame]
    ) -> list[Done]:
        done: list[Done] = []
        for frame in frames:
            try:
                done += stage([frame])
            except Exception as error:
                self._tally.drop(frame.camera, {"internal_error": 1})
                self._tally.add(frame.camera, "unused_frames")
                self._tell(error)
        return done

    def publish(self, send: Callable[[Ready], None], frames: Sequence[Ready]) -> None:
        """Send frames, one after the other; one that cannot be sent costs itself only."""
        for frame in frames:
            try:
                send(frame)
            except Exception as error:
                self._tally.drop(frame.camera, {"not_published": 1})
                self._tell(error)
