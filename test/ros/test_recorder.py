"""The demo's recorder: nothing that was heard may be missing in its bag."""

from __future__ import annotations

import json

import pytest
from rclpy.duration import Duration
from sensor_msgs.msg import CameraInfo
from vision_msgs.msg import Detection2D, Detection2DArray, LabelInfo, ObjectHypothesisWithPose

from lla_fusion_ros.bags.reader import Bag
from support.ros import LATCHED

ACKED = Duration(seconds=20)


def test_without_a_clock_messages_are_recorded_at_their_stamps(ros_graph, ros_process, tmp_path):
    node = ros_graph.node()
    labels = node.create_publisher(LabelInfo, "/fused_classes/label_info", LATCHED)
    labels.publish(LabelInfo())  # as from a node whose clock has not begun
    fused = node.create_publisher(Detection2DArray, "/fused_classes", 10)
    out = tmp_path / "bag"
    recorder = ros_process(
        "lla_fusion_ros.ros recorder",
        *("--out", str(out), "--cameras", "left"),
        params={"use_sim_time": True},
    )
    recorder.wait_for_log('"labels"')
    ros_graph.publish_until(fused, _fused_classes(second=7), lambda: '"fused"' in recorder.log)
    assert recorder.stop() == 0, recorder.log
    with Bag(out) as bag:
        recorded = [(message.topic, message.time) for message in bag.messages()]
    assert recorded[0] == ("/fused_classes/label_info", 7 * 10**9)
    assert set(recorded[1:]) == {("/fused_classes", 7 * 10**9)}
    heard = [json.loads(line) for line in recorder.log.splitlines() if line.startswith("{")]
    assert len(recorded) == sum(line["event"] != "ready" for line in heard)


def test_classes_with_names_are_recorded(ros_graph, ros_process, tmp_path):
    fused = ros_graph.node().create_publisher(Detection2DArray, "/fused_classes", 10)
    out = str(tmp_path / "bag")
    recorder = ros_process("lla_fusion_ros.ros recorder", "--out", out, "--cameras", "left")
    recorder.wait_for_log('"ready"')
    ros_graph.publish_until(fused, _fused_classes(7, "bend"), lambda: '"class":"bend"' in recorder.log)
    assert recorder.stop() == 0, recorder.log


def _fused_classes(second: int, said: str = "0") -> Detection2DArray:
    message = Detection2DArray()
    message.header.stamp.sec = second
    hypothesis = ObjectHypothesisWithPose()
    hypothesis.hypothesis.class_id, hypothesis.hypothesis.score = said, 1.0
    message.detections = [Detection2D(header=message.header, results=[hypothesis], id="1")]
    return message


def test_where_the_cameras_are_is_recorded(ros_graph, ros_process, tmp_path):
    tf2 = pytest.importorskip("tf2_msgs.msg", reason="`make setup` builds it where no ROS is sourced")
    node = ros_graph.node()
    static = node.create_publisher(tf2.TFMessage, "/tf_static", LATCHED)
    static.publish(tf2.TFMessage())
    info = node.create_publisher(CameraInfo, "/left/camera_info", 10)
    fused = node.create_publisher(Detection2DArray, "/fused_classes", 10)
    out = tmp_path / "bag"
    recorder = ros_process("lla_fusion_ros.ros recorder", "--out", str(out), "--cameras", "left")
    recorder.wait_for_log('"ready"')
    ros_graph.wait_for_subscribers(static)
    ros_graph.wait_for_subscribers(info)
    info.publish(CameraInfo())
    assert static.wait_for_all_acked(ACKED) and info.wait_for_all_acked(ACKED)
    # what had come before the first of two messages is recorded when the second one is heard
    ros_graph.publish_until(fused, _fused_classes(second=7), lambda: recorder.log.count('"fused"') >= 2)
    assert recorder.stop() == 0, recorder.log
    with Bag(out) as bag:
        assert {"/tf_static", "/left/camera_info"} <= {message.topic for message in bag.messages()}
