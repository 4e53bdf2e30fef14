"""The executables as processes: refusal to start, latched labels, Ctrl-C. Their deaths are in test/faults."""

from __future__ import annotations

import signal
from pathlib import Path

from vision_msgs.msg import LabelInfo

from support.ros import LATCHED

FUSION = "lla_fusion_ros.ros class_fusion"


def test_nodes_refuse_to_start_with_one_sentence_and_a_non_zero_code(ros_graph, ros_process, model, tmp_path):
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(Path(model).read_bytes()[:-100])
    cases = [
        (ros_process(FUSION, params={"model": str(damaged)}, name="damaged"), "damaged.safetensors"),
        (ros_process(FUSION, params={"model": model, "window": -5}, name="window"), "window"),
    ]
    for process, says in cases:
        assert process.wait() == 1
        last = process.log.strip().splitlines()[-1]
        assert says in last and "Traceback" not in process.log, process.log


def test_a_fusion_node_alone_latches_its_labels_and_ends_cleanly_on_ctrl_c(ros_graph, ros_process, model):
    process = ros_process(FUSION, params={"model": model}, name="fusion")
    labels = ros_graph.collect(ros_graph.node("late"), LabelInfo, "/fused_classes/label_info", LATCHED)
    ros_graph.spin_until(lambda: labels, what="the latched labels")
    assert [entry.class_id for entry in labels[0].class_map] == [0, 1, 2, 3]
    assert process.stop(signal.SIGINT) == 0 and "Traceback" not in process.log, process.log
