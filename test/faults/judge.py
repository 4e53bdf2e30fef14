"""Compares every answer of the nodes with what the core says to the same frames, in the order they came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from faults.core import Core, Names, Shot, difference
from faults.drive import CAMERAS
from faults.stage import PATIENCE
from lla_fusion_ros.stream.frames import FusedFrame
from lla_fusion_ros.types.settings import FusionSettings
from support.camera import stamp_of
from support.ros import RosGraph


class Judge:
    """What was sent, what came back, and whether that is right.

    Attributes:
        fused: answers as they come.
        wrong: sentences about answers that are not what the core says.
    """

    graph: RosGraph
    fused: list[Any]

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self._sent: dict[tuple[str, int], Shot] = {}
        self._judged = 0
        self._names: Names | None = None  # where ids are equal
        self._core = self.new_core()

    def new_core(self, settings: FusionSettings | None = None, identity: str = "global") -> Core:
        """What a node without tracks would say."""
        return Core(CAMERAS, settings, identity)

    def forget_answers(self, settings: FusionSettings | None = None, identity: str = "global") -> None:
        """From here on the answers of a node without tracks are expected."""
        self._core = self.new_core(settings, identity)
        self._sent.clear()
        self.fused.clear()
        self._judged = 0
        self.wrong.clear()

    def judge(self) -> list[tuple[str, int]]:
        """Compare all answers, in the order they came, with the core's; the frames that were answered."""
        answered = []
        while self._judged < len(self.fused):
            message = self.fused[self._judged]
            self._judged += 1
            key = (message.header.frame_id, stamp_of(message))
            shot = self._sent.get(key)
            expected = None if shot is None else self._core.take(shot)
            if expected is None:
                self._note(f"{key} was published, but {'never sent' if shot is None else 'is of no use'}")
            else:
                self._note(difference(message, expected, self._names))
                answered.append(key)
        return answered

    def core_losses(self, camera: str) -> Counter[str]:
        """What the core counted as lost of the frames it was given."""
        return self._core.losses(camera)

    def expect_from_elsewhere(self, shots: Iterable[Shot]) -> None:
        """Frames that another process sends."""
        self._sent.update({(shot.camera, shot.stamp): shot for shot in shots})

    def _compare(self, shot: Shot, expected: FusedFrame) -> None:
        self._await(self._judged + 1, f"the answer to {shot.camera} at {shot.stamp}")
        self._note(difference(self.fused[self._judged], expected, self._names))
        self._judged += 1

    def _await(self, count: int, what: str) -> None:
        self.graph.spin_until(lambda: len(self.fused) >= count, PATIENCE, what)

    def _note(self, wrong: str) -> None:
        if wrong:
            self.wrong.append(wrong)
