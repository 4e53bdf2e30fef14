"""`argmax_node`: what the benchmark compares `perception` with: the best class of each single frame.

It shares perception's inputs, crops and networks, so that the difference is the price of fusion, warnings
and whole distributions alone.
"""

from __future__ import annotations

from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.detections import Listing, write_detections
from lla_fusion_ros.ros.crop_classifier import CropClassifierNode
from lla_fusion_ros.ros.process_life import run
from lla_fusion_ros.stream.frame_messages import Outgoing, view_pmf
from lla_fusion_ros.stream.frames import FusedFrame, ViewFrame
from lla_fusion_ros.stream.perception import Perception


class ArgmaxNode(CropClassifierNode):
    """Publishes the most probable class of every view on `fused_classes`, and forgets it."""

    def build(self) -> Perception:
        perception = super().build()
        self.outputs.advertise(contract.FUSED_CLASSES, contract.DETECTIONS)
        return perception

    def publish(self, frame: FusedFrame | ViewFrame) -> None:
        assert isinstance(frame, ViewFrame)
        listed = write_detections(frame.header, frame.ids, frame.bbox, view_pmf(frame), Listing(most=1))
        self.outputs.publish(Outgoing(contract.FUSED_CLASSES, contract.DETECTIONS, listed))


def main(args: list[str] | None = None) -> None:
    run(ArgmaxNode, args)


if __name__ == "__main__":
    main()
