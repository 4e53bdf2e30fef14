"""Classifiers and fusion in processes of their own give the numbers of the one-process node."""

from __future__ import annotations

import signal

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from vision_msgs.msg import Detection2DArray

from lla_fusion_ros.bundle import save_bundle
from support.camera import BOXES, SECOND, START, CameraOnGraph, counted, pmf_of, scene, stamp_of
from support.tiny_bundle import tiny_bundle

IDS = ("a", "b")
PREFIX = "lla_fusion_ros.ros "
FUSION_WITHOUT_TORCH = """
import sys

class Without:  # where torch is not installed
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Without())
from lla_fusion_ros.ros.executables import class_fusion
class_fusion()
"""


@pytest.fixture
def models(tmp_path) -> tuple[str, str]:
    """Two bundles of the same shape and different weights."""
    paths = [str(tmp_path / f"model_{seed}.safetensors") for seed in (0, 1)]
    for seed, path in enumerate(paths):
        save_bundle(tiny_bundle(seed=seed), path)
    return paths[0], paths[1]


def test_distributed_equals_one_process_and_foreign_views_are_refused(ros_graph, ros_process, models):
    ours, theirs = models
    fused = {"model": ours, "cameras": ["left", "right"], "listed_mass": 1.0}
    both = {**fused, "identity": "global", "image_transport": "raw"}
    # the one-process node lives in a namespace of its own and hears the same cameras
    inputs = {
        f"{camera}/{topic}": f"/{camera}/{topic}"
        for camera in ("left", "right")
        for topic in ("image", "detections")
    }
    processes = [
        ros_process(f"{PREFIX}perception", params=both, remap={"__ns": "/one", **inputs}, name="one"),
        ros_process(FUSION_WITHOUT_TORCH, params=fused, name="fusion"),
    ]
    for camera in ("left", "right"):
        params = {"model": ours, "cameras": [camera], "identity": "global", "image_transport": "raw"}
        remap = {"__node": f"classifier_{camera}"}
        processes.append(ros_process(f"{PREFIX}crop_classifier", params=params, remap=remap, name=camera))
    node = ros_graph.node("observer")
    cameras = [CameraOnGraph(node, "left"), CameraOnGraph(node, "right")]
    one = ros_graph.collect(node, Detection2DArray, "/one/fused_classes", 100)
    distributed = ros_graph.collect(node, Detection2DArray, "/fused_classes", 100)
    diagnostics = ros_graph.collect(node, DiagnosticArray, "/diagnostics", 100)
    for camera in cameras:
        ros_graph.wait_for_subscribers(camera.images, 2)
        ros_graph.wait_for_subscribers(camera.detections, 2)
        ros_graph.spin_until(
            lambda name=camera.name: (
                node.count_subscribers(f"/{name}/views")
                and node.count_publishers(f"/{name}/views/embeddings")
            )
        )
    for topic in ("/one/fused_classes", "/fused_classes"):
        ros_graph.wait_for_publishers(node, topic)
    # each classifier and the fusion node must have found each other too: first frames of both cameras tell
    step = 0
    while {message.header.frame_id for message in distributed} != {"left", "right"}:
        for camera in cameras:
            camera.send(START + step * SECOND // 10, scene(0), ("warm up",), BOXES[:1])
        step += 1
        ros_graph.spin_until(lambda count=step: len(one) >= 2 * count, what="the one-process node")
    settled = START + step * SECOND // 10
    for step in range(6):
        for index, camera in enumerate(cameras):
            stamp = settled + step * SECOND // 10 + index
            camera.send(stamp, scene(step + 10 * index), IDS, BOXES)
            for received in (one, distributed):
                ros_graph.spin_until(
                    lambda received=received, stamp=stamp: received and stamp_of(received[-1]) == stamp,
                    what=f"the fused frame of {camera.name}",
                )
            pairs = zip(one[-1].detections, distributed[-1].detections, strict=True)
            for here, there in pairs:
                assert here.id == there.id
                np.testing.assert_allclose(pmf_of(here), pmf_of(there), atol=1e-5)
    # the left classifier is replaced by one with another model file: the fusion node refuses its views
    assert processes[2].stop(signal.SIGTERM) == 0
    params = {"model": theirs, "cameras": ["left"]}
    ros_process(f"{PREFIX}crop_classifier", params=params, remap={"__node": "other"}, name="other")
    ros_graph.spin_until(
        lambda: any(
            "they are refused" in status.message for message in diagnostics for status in message.status
        ),
        what="a diagnostic that names the foreign bundle",
    )
    ros_graph.wait_for_subscribers(cameras[0].images, 2)
    before = len(distributed)
    step = 0
    while not counted(
        [m for m in diagnostics if m.status[0].name == "class_fusion"], "left", "dropped_other_bundle"
    ):
        step += 1
        cameras[0].send(settled + SECOND + step * SECOND // 10, scene(1), IDS, BOXES)
        so_far = len(diagnostics)
        ros_graph.spin_until(lambda so_far=so_far: len(diagnostics) > so_far, what="more diagnostics")
    assert len(distributed) == before
