"""The executables as processes: signals, refusal to start, death and return."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest
from rclpy.qos import QoSProfile
from vision_msgs.msg import Detection2DArray, LabelInfo

from lla_fusion_ros.bundle import save_bundle
from support.camera import SECOND, START, CameraOnGraph, stamp_of
from support.ros import LATCHED
from support.tiny_bundle import tiny_bundle

pytestmark = pytest.mark.faults

PERCEPTION = "lla_fusion_ros.ros.perception_node"
FUSION = "lla_fusion_ros.ros.class_fusion_node"


@pytest.fixture
def model(tmp_path) -> str:
    path = tmp_path / "tiny.safetensors"
    save_bundle(tiny_bundle(), path)
    return str(path)


def test_a_killed_node_comes_back_and_signals_during_work_end_it_cleanly(ros_graph, ros_process, model):
    node = ros_graph.node("observer")
    fused = ros_graph.collect(node, Detection2DArray, "/fused_classes", QoSProfile(depth=100))
    camera = CameraOnGraph(node, "camera")
    image = np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8)
    ids, boxes = [str(index) for index in range(20)], np.tile([20.0, 20, 16, 16], (20, 1))
    step = 0

    def drive_until_fused() -> None:
        nonlocal step
        ros_graph.wait_for_subscribers(camera.images)
        ros_graph.wait_for_subscribers(camera.detections)
        for _ in range(30):  # what a node that is gone had sent
            ros_graph._spin_once()
        fused.clear()
        first = START + step * SECOND // 10
        while not fused:
            camera.send(START + step * SECOND // 10, image, ids, boxes)
            step += 1
            for _ in range(10):  # at a pace that a busy machine can follow
                if not fused:
                    ros_graph._spin_once()
        assert stamp_of(fused[0]) >= first  # nothing of an earlier life
        assert all(len(message.detections) == 20 for message in fused)

    for sig, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 0)):
        process = ros_process(PERCEPTION, params={"model": model}, name=sig.name)
        drive_until_fused()
        for _ in range(20):  # work is under way when the signal comes
            camera.send(START + step * SECOND // 10, image, ids, boxes)
            step += 1
        assert process.stop(sig) == code, process.log
        assert "Traceback" not in process.log, process.log


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
