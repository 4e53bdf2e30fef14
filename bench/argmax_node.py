"""`argmax_node`: what the benchmark compares `perception` with: the best class of each single frame.

It shares perception's inputs and crops; with a bundle of one network it is what a user would run instead.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.detections import Listing, write_detections
from lla_fusion_ros.networks import classifier
from lla_fusion_ros.ros.crop_classifier import CropClassifierNode
from lla_fusion_ros.ros.process_life import run
from lla_fusion_ros.stream.frame_messages import Outgoing, view_pmf
from lla_fusion_ros.stream.frames import FusedFrame, ViewFrame
from lla_fusion_ros.stream.perception import Perception


def best_classes(frame: ViewFrame) -> Outgoing:
    listed = write_detections(frame.header, frame.ids, frame.bbox, view_pmf(frame), Listing(most=1))
    return Outgoing(contract.FUSED_CLASSES, contract.DETECTIONS, listed)


def without_quality() -> AbstractContextManager[Any]:
    """Classifiers do not measure the quality of crops, which only fusion needs."""
    return patch.object(classifier, "crop_quality", lambda crops: None)


class ArgmaxNode(CropClassifierNode):
    """Publishes the most probable class of every view on `fused_classes`, and forgets it."""

    def build(self) -> Perception:
        perception = super().build()
        self.outputs.advertise(contract.FUSED_CLASSES, contract.DETECTIONS)
        return perception

    def publish(self, frame: FusedFrame | ViewFrame) -> None:
        assert isinstance(frame, ViewFrame)
        self.outputs.publish(best_classes(frame))


def main(args: list[str] | None = None) -> None:
    with without_quality():
        run(ArgmaxNode, args)


if __name__ == "__main__":
    main()
