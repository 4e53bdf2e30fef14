"""Fail-safe behaviour as somebody on the graph sees it (docs/robustness.md)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from vision_msgs.msg import Detection2DArray

from lla_fusion_ros.bundle import save_bundle
from lla_fusion_ros.bundle.container import read_container, write_container
from lla_fusion_ros.types.errors import LlaFusionError
from support.camera import SECOND, START, CameraOnGraph, counted, stamp_of
from support.tiny_bundle import tiny_bundle

BOX = np.array([[20.0, 20, 16, 16]])


def truncated(path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def foreign(path) -> None:
    path.write_bytes(b"PK\x03\x04 somebody's archive")


def forged(path) -> None:
    """Other metadata under a right hash."""
    document, tensors, _ = read_container(path)
    write_container(path, {**document, "class_names": document["class_names"][:-1]}, tensors)


def another_network(path) -> None:
    document, tensors, _ = read_container(path)
    architecture = {**document["architecture"], "channels": [10**6, 10**6, 10**6]}
    write_container(path, {**document, "architecture": architecture}, tensors)


def unknown_fuser(path) -> None:
    document, tensors, _ = read_container(path)
    write_container(path, {**document, "default_fuser": "oracle"}, tensors)


@pytest.mark.parametrize("damage", [truncated, foreign, forged, another_network, unknown_fuser])
def test_with_a_wrong_model_file_the_node_refuses_and_publishes_nothing(
    ros_graph, perception_node, tmp_path, damage
) -> None:
    path = tmp_path / "model.safetensors"
    save_bundle(tiny_bundle(), path)
    damage(path)
    node = perception_node(model=str(path), cameras=["left"])
    with pytest.raises(LlaFusionError, match=r"model\.safetensors") as refused:
        node.start()
    assert "\n" not in str(refused.value)
    published = {topic for topic, _ in node.get_publisher_names_and_types_by_node("perception", "/")}
    assert published == {"/diagnostics", "/parameter_events", "/perception/transition_event", "/rosout"}
    assert node.get_subscriber_names_and_types_by_node("perception", "/") == []


def test_a_camera_that_goes_dark_is_no_evidence_and_shows_in_diagnostics(
    ros_graph, perception_node, tmp_path
) -> None:
    bundle = tiny_bundle()
    path = tmp_path / "model.safetensors"
    save_bundle(replace(bundle), path)
    node = perception_node(model=str(path), cameras=["left"])
    node.start()
    listener = ros_graph.node("listener")
    camera = CameraOnGraph(listener, "left")
    fused = ros_graph.collect(listener, Detection2DArray, "/fused_classes", 100)
    diagnostics = ros_graph.collect(listener, DiagnosticArray, "/diagnostics", 100)
    ros_graph.wait_for_subscribers(camera.images)
    ros_graph.wait_for_subscribers(camera.detections)
    ros_graph.wait_for_publishers(listener, "/fused_classes")
    bright = np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8)
    frames = [bright, np.zeros_like(bright), np.zeros_like(bright), bright]
    for step, picture in enumerate(frames):
        stamp = START + step * SECOND // 10
        camera.send(stamp, picture, ["a"], BOX)
        ros_graph.spin_until(lambda stamp=stamp: fused and stamp_of(fused[-1]) == stamp, what="the frame")
    assert [len(message.detections) for message in fused] == [1, 0, 0, 1]
    ros_graph.spin_until(lambda: counted(diagnostics, "left", "dropped_no_contrast") == 2, what="the count")
    levels = {
        status.level
        for message in diagnostics
        for status in message.status
        if status.name.endswith("camera left") and "no_contrast" in status.message
    }
    assert levels == {DiagnosticStatus.WARN}
