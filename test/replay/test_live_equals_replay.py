"""Offline replay and the live node give the same numbers from the same frames in the same order."""

from __future__ import annotations

import re

import numpy as np
import pytest
from replay.scenes import STEP, reorder_scene, write_scene

from support.tiny_bundle import tiny_bundle

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticArray
from vision_msgs.msg import Detection2DArray

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bundle import load_bundle, save_bundle
from lla_fusion_ros.messages.detections import Detections, parse_detections
from lla_fusion_ros.replay.output_folder import FUSED_BAG, Wanted, replay_to_folder
from lla_fusion_ros.replay.replay import ReplayOptions

FRAMES = 12


def fused_classes(path) -> list[Detections]:
    with Bag(path) as bag:
        return [
            parse_detections(message.data, with_scores=True) for message in bag.messages(["/fused_classes"])
        ]


def pmf(scores) -> np.ndarray:
    return np.array([score for _, score in sorted(scores, key=lambda pair: int(pair[0]))])


STATED = {"track_status": DiagnosticArray, "class_sets": Detection2DArray, "decisions": Detection2DArray}
COSTS = """
brake: {class 0: 0, otherwise: 1, unknown: 0.2}
drive: {class 0: 5, otherwise: 0.1, unknown: 3}
"""


def stated(path, topic) -> list[bytes]:
    with Bag(path) as bag:
        return [bytes(message.data) for message in bag.messages(["/" + topic])]


def content(topic, data: bytes):
    """What a message says; numbers to three digits, as batches of other sizes differ in the last ones."""
    if topic == "track_status":
        return re.sub(rb"(\d\.\d\d\d)\d+", rb"\1", data)
    told = parse_detections(data, with_scores=True)
    return told.ids, [[(name, round(score, 3)) for name, score in scores] for scores in told.scores]


def test_the_live_node_and_the_replay_publish_the_same(ros_graph, ros_process, tmp_path):
    save_bundle(tiny_bundle(), tmp_path / "tiny.safetensors")
    drive = write_scene(tmp_path / "drive", frames=FRAMES, compressed=True, stagger=STEP // 2)
    long_lines = {"queue_depth": 100, "input_depth": 100, "output_depth": 100, "listed_mass": 1.0}
    params = {"model": str(tmp_path / "tiny.safetensors"), "cameras": ["left", "right"], **long_lines}
    costs = tmp_path / "costs.yaml"
    costs.write_text(COSTS)
    params |= {"coverage": 0.8, "costs": str(costs)}
    ros_process("lla_fusion_ros.ros perception", params=params, name="perception")
    recorder = ros_process(
        "lla_fusion_ros.ros recorder",
        "--out",
        str(tmp_path / "live"),
        "--cameras",
        "left",
        "right",
        name="recorder",
    )
    recorder.wait_for_log('"event":"labels"')
    heard = {topic: [] for topic in STATED}
    node = ros_graph.node()
    for topic, kind in STATED.items():
        node.create_subscription(kind, topic, heard[topic].append, 100, raw=True)
    ros_graph.spin_until(
        lambda: all(node.count_publishers(topic) for topic in STATED), what="the topics of statements"
    )
    player = ros_process("lla_fusion_ros.ros bag_player", str(drive), "--wait", "60", name="player")
    assert player.wait() == 0
    ros_graph.spin_until(lambda: recorder.log.count('"event":"fused"') == 2 * FRAMES, what="all fused frames")
    assert recorder.stop() == 0

    live = fused_classes(tmp_path / "live")
    order = [(each.header.frame_id, each.header.stamp) for each in live]
    assert len(live) == 2 * FRAMES == len(set(order))
    # DDS keeps the order of one camera, not that of frames of two; the replay gets the one that was live.
    in_order = [(frame_id.removesuffix("_optical"), stamp) for frame_id, stamp in order]
    as_arrived = reorder_scene(drive, tmp_path / "as arrived", in_order)
    bundle = load_bundle(tmp_path / "tiny.safetensors")
    wanted = Wanted(table=False, report=False, coverage=0.8, costs=str(costs))
    replay_to_folder(as_arrived, bundle, tmp_path / "offline", ReplayOptions(), wanted)
    offline = fused_classes(tmp_path / "offline" / FUSED_BAG)
    assert order == [(each.header.frame_id, each.header.stamp) for each in offline]
    for one, other in zip(live, offline, strict=True):
        assert one.ids == other.ids
        np.testing.assert_array_equal(one.bbox, other.bbox)
        for left, right in zip(one.scores, other.scores, strict=True):
            np.testing.assert_allclose(pmf(left), pmf(right), atol=1e-5)
    for topic, messages in heard.items():
        ros_graph.spin_until(lambda m=messages: len(m) == 2 * FRAMES, what=f"all of {topic}")
        for one, other in zip(stated(tmp_path / "offline" / FUSED_BAG, topic), messages, strict=True):
            assert content(topic, one) == content(topic, bytes(other)[: len(one)])  # DDS fills up to words
