"""What time and the network can do to frames: the node lives, counts, and the next good frame is right."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.parameter import Parameter
from std_srvs.srv import Trigger
from vision_msgs.msg import Detection2DArray

from lla_fusion_ros.bundle import save_bundle
from lla_fusion_ros.crops import Pixels, cut_crops
from lla_fusion_ros.pipeline import Classifier, FusionEngine, Observation
from lla_fusion_ros.ros.perception import PerceptionNode
from lla_fusion_ros.settings import FusionSettings
from lla_fusion_ros.stream.settings import StreamSettings
from lla_fusion_ros.wire.cdr import Header
from lla_fusion_ros.wire.detections import write_detections
from support.camera import SECOND, START, CameraOnGraph, counted, pmf_of, stamp_of
from support.tiny_bundle import tiny_bundle

pytestmark = pytest.mark.faults

BOX = np.array([[20.0, 20, 16, 16]])
TENTH = SECOND // 10


def scene(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 255, (60, 80, 3), np.uint8)


class Drive:
    """A node, its camera, what it sends, and what the core says about the same frames."""

    def __init__(self, graph, node, bundle) -> None:
        self.graph, self.node = graph, node
        self.camera = CameraOnGraph(node, "left")
        self.fused = graph.collect(node, Detection2DArray, "/fused_classes", 100)
        self.diagnostics = graph.collect(node, DiagnosticArray, "/diagnostics", 100)
        self._bundle = bundle
        self._classifier, self._engine = Classifier(bundle, "cpu"), FusionEngine(bundle)
        graph.wait_for_subscribers(self.camera.images)
        graph.wait_for_subscribers(self.camera.detections)
        graph.wait_for_publishers(node, "/fused_classes")

    def start_afresh(self) -> None:
        """From here on the core expects no tracks."""
        self._engine = FusionEngine(self._bundle)

    def send(self, stamp: int, seed: int = 0) -> None:
        self.camera.send(stamp, scene(seed), ("a",), BOX)

    def good(self, stamp: int, seed: int) -> None:
        """Send a frame and check that its result is right."""
        self.send(stamp, seed)
        self.graph.spin_until(lambda: self.fused and stamp_of(self.fused[-1]) == stamp, what="the good frame")
        crops = cut_crops(Pixels(scene(seed), "rgb"), BOX, self._bundle.input_size, self._bundle.crop_margin)
        expected = self._engine.update(Observation("left", stamp, ("a",), self._classifier(crops)))
        np.testing.assert_allclose(pmf_of(self.fused[-1].detections[0]), expected.pmf[0], atol=1e-5)

    def expect(self, key: str, count: int) -> None:
        """Wait until /diagnostics says so."""
        self.graph.spin_until(
            lambda: counted(self.diagnostics, "left", key) == count, what=f"{key} = {count} in /diagnostics"
        )


@pytest.fixture
def drive(ros_graph, tmp_path):
    bundle = tiny_bundle()
    save_bundle(bundle, tmp_path / "tiny.safetensors")
    values = {"model": str(tmp_path / "tiny.safetensors"), "cameras": ["left"], "input_depth": 100}
    overrides = [Parameter(name, value=value) for name, value in values.items()]
    node = ros_graph.add(PerceptionNode(parameter_overrides=overrides))
    node.start()
    yield Drive(ros_graph, ros_graph.node("tester"), bundle)
    node.stop()


def test_a_duplicated_frame_is_counted_and_changes_nothing(drive):
    drive.good(START, 0)
    drive.send(START, 0)
    drive.expect("dropped_duplicate", 1)
    drive.good(START + TENTH, 1)


def test_a_frame_that_comes_too_late_is_counted_and_changes_nothing(drive):
    drive.good(START, 0)
    drive.good(START + 10 * TENTH, 1)
    drive.send(START + TENTH, 2)
    drive.expect("dropped_late", 1)
    drive.good(START + 11 * TENTH, 3)


def test_frames_in_swapped_order_are_both_fused(drive):
    drive.good(START, 0)
    drive.good(START + 2 * TENTH, 1)
    drive.good(START + TENTH, 2)
    drive.good(START + 3 * TENTH, 3)


def test_a_backward_jump_clears_the_tracks_and_is_counted_once(drive):
    for step in range(3):
        drive.good(START + step * TENTH, step)
    drive.start_afresh()
    for step in range(3):
        drive.good(START // 2 + step * TENTH, step + 5)
    drive.expect("clock_jumps", 1)


def test_an_image_without_boxes_and_boxes_without_image_do_no_harm(drive):
    for step in range(15):
        drive.camera.send_image(START + step * TENTH, scene(step))
    for step in range(15):
        drive.camera.send_boxes(START + (100 + step) * TENTH, ("a",), BOX)
    drive.expect("images_without_detections", 5)
    drive.expect("dropped_detections_without_image", 5)
    drive.good(START + 20 * TENTH, 1)


def test_images_of_changing_size_and_encoding_are_fused(drive):
    rng = np.random.default_rng(3)
    for step, shape in enumerate([(60, 80, 3), (480, 640, 3), (32, 32, 3), (7, 900, 3)]):
        stamp = START + step * TENTH
        drive.camera.send(stamp, rng.integers(0, 255, shape, np.uint8), ("a",), [[12, 4, 8, 6]])
        drive.graph.spin_until(lambda stamp=stamp: drive.fused and stamp_of(drive.fused[-1]) == stamp)
    assert all(len(message.detections) == 1 for message in drive.fused)


def test_a_thousand_ids_in_a_second_stay_within_the_capacity(drive):
    assert drive.graph.set_parameter("perception", "capacity", 50).successful
    for step in range(10):
        ids = [f"{step}/{index}" for index in range(100)]
        drive.camera.send(START + step * TENTH, scene(step), ids, np.repeat(BOX, 100, axis=0))
    drive.graph.spin_until(
        lambda: drive.fused and stamp_of(drive.fused[-1]) == START + 9 * TENTH, what="the last frame"
    )
    assert max(len(message.detections) for message in drive.fused) == 50
    tracks = []

    def bounded() -> bool:
        for message in drive.diagnostics:
            tracks.extend(int(pair.value) for pair in message.status[0].values if pair.key == "tracks")
        return bool(tracks and tracks[-1] == 50)

    drive.graph.spin_until(bounded, what="50 tracks in /diagnostics")
    assert max(tracks) <= 50


def test_bytes_that_are_no_message_are_counted_and_do_no_harm(drive):
    rng = np.random.default_rng(1)
    good = write_detections(Header(START, "left"), ["a"], np.zeros((1, 5)))
    for size in (0, 1, 4, 40, 400):
        drive.camera.detections.publish(b"\x00\x01\x00\x00" + rng.bytes(size))
        drive.camera.images.publish(b"\x00\x01\x00\x00" + rng.bytes(size))
    drive.camera.detections.publish(good[:-7])
    drive.good(START + TENTH, 1)
    drive.graph.spin_until(
        lambda: counted(drive.diagnostics, "left", "dropped_bad_message") >= 5, what="bad messages counted"
    )


def test_parameters_set_at_random_never_stop_the_node(drive):
    rng = np.random.default_rng(2)
    changeable = [field for group in (StreamSettings, FusionSettings) for field in fields(group)]
    refused = 0
    for _ in range(40):
        field = changeable[rng.integers(len(changeable))]
        values = [0, -1, 3, 10**9, 0.0, 0.3, -5.0, float("nan"), "", "pool", "camera", "nonsense", True]
        result = drive.graph.set_parameter("perception", field.name, values[rng.integers(len(values))])
        assert result.successful or result.reason
        refused += not result.successful
    assert 0 < refused < 40
    for field in changeable:
        drive.graph.set_parameter("perception", field.name, field.default)
    for group in (StreamSettings, FusionSettings):
        for field in fields(group):  # twice: some depend on each other
            result = drive.graph.set_parameter("perception", field.name, field.default)
            assert result.successful or field.name == "sync_queue", (field.name, result.reason)
    drive.start_afresh()
    drive.graph.call(drive.node, Trigger, "/perception/reset", Trigger.Request())
    drive.good(START, 1)
