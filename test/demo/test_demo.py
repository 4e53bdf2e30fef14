"""The demo over real DDS with real processes, on a drive of a second and a half."""

from __future__ import annotations

import json
from dataclasses import replace

import cv2
import pytest

from support.tiny_bundle import tiny_bundle

pytest.importorskip("rclpy")

from lla_fusion_ros.bags.describe import describe_bag
from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bundle import save_bundle
from lla_fusion_ros.demo.processes import DemoError
from lla_fusion_ros.demo.run_demo import Demo
from lla_fusion_ros.messages.detections import parse_detections
from lla_fusion_ros.signworld import CLASS_NAMES, Drive, DriveSettings

STEPS = 15


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    bundle = tiny_bundle(classes=len(CLASS_NAMES))
    path = tmp_path_factory.mktemp("model") / "tiny.safetensors"
    save_bundle(replace(bundle, meta=replace(bundle.meta, class_names=CLASS_NAMES)), path)
    return path


def test_the_demo_runs_to_its_end_and_leaves_everything_it_promises(model, tmp_path, ros_domain):
    told, watched = [], []
    drive = Drive(DriveSettings(duration=STEPS / 10))
    result = Demo(tmp_path / "out", model, drive, 1.0, told.append, watched.append, ros_domain).run()
    assert result.frames_sent == result.frames_fused == 2 * STEPS
    assert result.agreement_frames == 2 * STEPS and result.agreement < 1e-5
    assert {file.name for file in result.outcome.files} == {"report.html", "fused.csv", "scores.json"}
    assert all(file.stat().st_size for file in result.outcome.files)
    assert any("rendering" in text for text in told) and watched[-1].frames == 2 * STEPS
    recording = describe_bag(result.recording)
    assert recording.can_be_fused and {camera.name for camera in recording.cameras} == {"left", "right"}
    video = cv2.VideoCapture(str(result.video))
    # a picture a moment, and one more where DDS brought a camera's next frame before the other's last
    assert STEPS <= video.get(cv2.CAP_PROP_FRAME_COUNT) < 2 * STEPS
    assert video.read()[1].shape == (360, 960, 3)
    assert "<image " in (tmp_path / "out" / "report.html").read_text()


def test_boxes_without_ids_are_tracked_by_each_camera_and_scored_by_what_they_are(
    model, tmp_path, ros_domain
):
    drive = Drive(DriveSettings(duration=STEPS / 10))
    nobody = {"tell": lambda _: None, "watch": lambda _: None}
    demo = Demo(tmp_path / "out", model, drive, 1.0, **nobody, domain=ros_domain, without_ids=True)
    result = demo.run()
    assert result.frames_fused == 2 * STEPS and result.agreement < 1e-5
    with Bag(result.made.bag) as bag:
        sent = [parse_detections(message.data) for message in bag.messages(["/left/detections"])]
    assert sum(map(len, sent)) and not any(name for found in sent for name in found.ids)
    with Bag(result.recording) as bag:
        said = [parse_detections(message.data) for message in bag.messages(["/fused_classes"])]
    assert {name.partition("/")[0] for found in said for name in found.ids} == {"left", "right"}
    scores = json.loads((tmp_path / "out" / "scores.json").read_text())
    known = sum(label >= 0 for frame in drive for label in frame.labels)
    assert scores["fusers"][0]["views"] == known, "every view of a known sign has its truth"


def test_a_node_that_cannot_start_is_named_with_its_log(tmp_path, ros_domain):
    drive = Drive(DriveSettings(duration=20.0))
    nobody = {"tell": lambda _: None, "watch": lambda _: None}
    demo = Demo(tmp_path / "out", tmp_path / "no.safetensors", drive, 1.0, **nobody, domain=ros_domain)
    with pytest.raises(DemoError, match="perception ended early.*perception.log"):
        demo.run()
