"""`argmax_node`: what the benchmark compares `perception` with: the best class of each single frame.

It shares perception's inputs, crops and networks, so that the difference is the price of fusion, warnings
and whole distributions alone.
"""

from __future__ import annotations

from lla_fusion_ros.ros.crop_classifier import MOST_FRAMES, CropClassifierNode
from lla_fusion_ros.ros.run import run
from lla_fusion_ros.stream.outputs import Outgoing, view_pmf
from lla_fusion_ros.wire import contract
from lla_fusion_ros.wire.detections import write_detections


class ArgmaxNode(CropClassifierNode):
    """Publishes the most probable class of every view on `fused_classes`, and forgets it."""

    def build(self) -> None:
        super().build()
        self.outputs.advertise(contract.FUSED_CLASSES, contract.DETECTIONS)

    def work(self) -> bool:
        if self.queue is None or self._classify is None:
            return False
        waiting = self.queue.ready.take(MOST_FRAMES)
        for frame in self._classify(waiting):
            listed = write_detections(frame.header, frame.ids, frame.bbox, view_pmf(frame), max_hypotheses=1)
            self.outputs.publish(Outgoing(contract.FUSED_CLASSES, contract.DETECTIONS, listed))
        return bool(waiting)


def main(args: list[str] | None = None) -> None:
    run(ArgmaxNode, args)


if __name__ == "__main__":
    main()
