"""The perception node inside the test's process, talked to over DDS with stock messages."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import DescribeParameters
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image
from std_srvs.srv import Trigger
from vision_msgs.msg import Detection2DArray, LabelInfo

from lla_fusion_ros.bundle import save_bundle
from lla_fusion_ros.messages.detections import parse_detections
from lla_fusion_ros.reliance.statements import Reliance
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.errors import InputError, LlaFusionError
from lla_fusion_ros.types.settings import FusionSettings
from support.camera import BOXES, SECOND, START, TENTH, CameraOnGraph, counted, pmf_of, scene, stamp_of
from support.reference import reference
from support.ros import LATCHED

IDS = ("a", "b")


@pytest.fixture
def make_node(perception_node, model):
    return partial(
        perception_node, model=model, cameras=["left", "right"], identity="global", listed_mass=1.0
    )


def connect(graph, listener, camera, topic="/fused_classes"):
    """Wait until both directions are discovered; returns what arrives on the topic."""
    received = graph.collect(listener, Detection2DArray, topic, 100)
    graph.wait_for_subscribers(camera.images)
    graph.wait_for_subscribers(camera.detections)
    graph.wait_for_publishers(listener, topic)
    return received


def test_stock_subscribers_read_the_numbers_of_the_core_and_late_ones_get_labels(
    ros_graph, make_node, listener, bundle
):
    make_node().start()
    cameras = [CameraOnGraph(listener, "left"), CameraOnGraph(listener, "right", "png")]
    connect(ros_graph, listener, cameras[1])
    received = connect(ros_graph, listener, cameras[0])
    frames = [
        (camera.name, START + step * TENTH, scene(step), IDS, BOXES)
        for step in range(4)
        for camera in cameras
    ]
    for index, (_, stamp, image, ids, boxes) in enumerate(frames):
        cameras[index % 2].send(stamp, image, ids, boxes)
        ros_graph.spin_until(lambda count=index + 1: len(received) == count, what="the fused frame")
    for message, expected, frame in zip(received, reference(bundle, frames), frames, strict=True):
        assert (message.header.frame_id, stamp_of(message)) == (frame[0], frame[1])
        assert tuple(detection.id for detection in message.detections) == expected.ids == IDS
        for row, detection in enumerate(message.detections):
            scores = [result.hypothesis.score for result in detection.results]
            assert scores == sorted(scores, reverse=True) and len(scores) == bundle.classes
            assert abs(sum(scores) - 1) < 1e-6
            np.testing.assert_allclose(pmf_of(detection), expected.pmf[row], atol=1e-5)
            assert (detection.bbox.center.position.x, detection.bbox.size_y) == (BOXES[row, 0], BOXES[row, 3])
    labels = ros_graph.collect(listener, LabelInfo, "/fused_classes/label_info", LATCHED)
    ros_graph.spin_until(lambda: labels, what="the latched labels")
    assert [entry.class_name for entry in labels[0].class_map] == list(bundle.class_names)


def test_a_bundle_of_onnx_graphs_runs_in_the_live_node(ros_graph, make_node, listener, bundle, tmp_path):
    exported = pytest.importorskip("lla_fusion_ros.lab.importing.export").exported(bundle)
    save_bundle(exported, tmp_path / "onnx.safetensors")
    node = make_node(model=str(tmp_path / "onnx.safetensors"), providers="tensorrt, cpu")
    node.start()
    about = node.reporting.about
    assert (about["engine"], about["device"]) == ("onnxruntime", "cpu")
    camera = CameraOnGraph(listener, "left")
    received = connect(ros_graph, listener, camera)
    camera.send(START, scene(0), IDS, BOXES)
    ros_graph.spin_until(lambda: received, what="the fused frame")
    (expected,) = reference(exported, [("left", START, scene(0), IDS, BOXES)])
    for row, detection in enumerate(received[0].detections):
        np.testing.assert_allclose(pmf_of(detection), expected.pmf[row], atol=1e-5)


def test_bad_messages_are_counted_and_the_next_good_frame_is_right(ros_graph, make_node, listener, bundle):
    make_node().start()
    camera = CameraOnGraph(listener, "left")
    received = connect(ros_graph, listener, camera)
    diagnostics = ros_graph.collect(listener, DiagnosticArray, "/diagnostics", 100)
    camera.images.publish(Image(height=100_000, width=100_000, encoding="rgb8", step=300_000))
    camera.detections.publish(Detection2DArray())  # stamp zero, as the image above: they pair
    lying = Image(height=60, width=80, encoding="rgb8", step=240, data=bytes(60))
    lying.header.stamp.sec = 1
    camera.images.publish(lying)
    camera.send_boxes(SECOND, IDS, BOXES)
    camera.send(START, scene(0), ("", "nan", "huge", "a"), [BOXES[0], [np.nan] * 4, [9e9] * 4, BOXES[0]])
    ros_graph.spin_until(lambda: received, what="the good frame after the bad ones")
    assert [detection.id for detection in received[0].detections] == ["a"]
    (expected,) = reference(bundle, [("left", START, scene(0), ("a",), BOXES[:1])])
    np.testing.assert_allclose(pmf_of(received[0].detections[0]), expected.pmf[0], atol=1e-5)
    for reason, count in (("bad_image", 2), ("empty_id", 1), ("box_not_finite", 1), ("box_absurd", 1)):
        ros_graph.spin_until(
            lambda key=f"dropped_{reason}", count=count: counted(diagnostics, "left", key) == count,
            what=f"{count} {reason} in the diagnostics",
        )


def test_a_frame_with_an_impossible_stamp_is_refused_and_the_others_go_on(ros_graph, make_node, listener):
    make_node().start()
    left, right = CameraOnGraph(listener, "left"), CameraOnGraph(listener, "right")
    connect(ros_graph, listener, left)
    received = connect(ros_graph, listener, right)
    diagnostics = ros_graph.collect(listener, DiagnosticArray, "/diagnostics", 100)
    image = Image(height=60, width=80, encoding="rgb8", step=240, data=scene(0).tobytes())
    boxes = Detection2DArray()
    for message in (image, boxes):
        message.header.stamp.sec, message.header.stamp.nanosec = 2**31 - 1, 2**32 - 1
    left.images.publish(image)
    left.detections.publish(boxes)
    right.send(START, scene(0), IDS, BOXES)
    ros_graph.spin_until(lambda: received, what="the good frame")
    assert received[0].header.frame_id == "right"
    bad = "dropped_bad_message"
    ros_graph.spin_until(lambda: counted(diagnostics, "left", bad) == 2, what="two bad messages counted")


def test_a_frame_that_cannot_be_published_costs_no_other_of_its_batch(ros_graph, make_node, listener):
    node = make_node()
    node.start()
    left, right = CameraOnGraph(listener, "left"), CameraOnGraph(listener, "right")
    connect(ros_graph, listener, left)
    received = connect(ros_graph, listener, right)
    diagnostics = ros_graph.collect(listener, DiagnosticArray, "/diagnostics", 100)
    publish = node.outputs.publish

    def broken(message):
        if parse_detections(message.data).header.frame_id == "left":
            raise RuntimeError("the writer is broken")
        publish(message)

    node.outputs.publish = broken
    with node._core_lock:  # the worker waits, so that both are in one batch
        left.send(START, scene(0), IDS, BOXES)
        ros_graph.spin_until(lambda: len(node.perception.queue.ready) == 1, what="the frame to come")
        right.send(START, scene(0), IDS, BOXES)
        ros_graph.spin_until(lambda: len(node.perception.queue.ready) == 2, what="both frames")
    ros_graph.spin_until(lambda: received, what="the good frame")
    assert [message.header.frame_id for message in received] == ["right"]
    lost = "dropped_not_published"
    ros_graph.spin_until(lambda: counted(diagnostics, "left", lost) == 1, what="the other one counted")


def test_two_publishers_on_a_camera_are_named_once_and_stamps_of_the_past_have_no_latency(
    ros_graph, make_node, listener, capfd
):
    make_node().start()
    diagnostics = ros_graph.collect(listener, DiagnosticArray, "/diagnostics", 100)
    cameras = [CameraOnGraph(listener, "left"), CameraOnGraph(ros_graph.node("recording"), "left")]
    connect(ros_graph, listener, cameras[0])
    received = connect(ros_graph, listener, cameras[1])
    ros_graph.wait_for_publishers(listener, "/left/image", 2)

    def own_values() -> dict[str, str]:
        statuses = [status for message in diagnostics for status in message.status]
        newest = [status for status in statuses if status.name == "perception"][-1:]
        return {pair.key: pair.value for status in newest for pair in status.values}

    def send(step: int) -> None:  # two times, far apart, in turns
        for number, camera in enumerate(cameras):
            camera.send(START + number * 100 * SECOND + step * TENTH, scene(0), IDS, BOXES)
        count = len(received)
        ros_graph.spin_until(lambda: len(received) >= count + 2, what="the fused frames")

    for step in range(10):
        send(step)
    ros_graph.spin_until(
        lambda: "/left/image" in own_values().get("two publishers on", ""), what="the report"
    )
    for step in range(10, 20):
        send(step)
    ros_graph.spin_until(lambda: counted(diagnostics, "left", "clock_jumps") > 10, what="the clock jumps")
    log = capfd.readouterr().err
    assert log.count("two publishers on /left/image (listener, recording)") == 1
    assert log.count("clock jumped back") == 1
    assert "latency p50 ms" not in own_values() and "work per frame ms" in own_values()


def test_a_slow_detector_loses_nothing_and_one_that_stamps_late_is_told_its_offset(
    ros_graph, make_node, listener
):
    make_node(queue_depth=100, input_depth=100, sync_lead=0.05).start()
    late, slow = CameraOnGraph(listener, "left"), CameraOnGraph(listener, "right")
    connect(ros_graph, listener, late)
    received = connect(ros_graph, listener, slow)
    diagnostics = ros_graph.collect(listener, DiagnosticArray, "/diagnostics", 100)
    period, frames, ahead, behind = SECOND // 20, 24, 4, 8  # 200 ms ahead of the images, 400 ms behind them
    for step in range(frames + behind):
        due = time.monotonic() + period / SECOND  # of the step before: a busy machine must not catch up
        ros_graph.spin_until(lambda due=due: time.monotonic() >= due, what="the next frame")
        if step < frames:
            for camera in (late, slow):
                camera.send_image(START + step * period, scene(0))
            late.send_boxes(START + (step + ahead) * period, IDS, BOXES)
        if step >= behind:
            slow.send_boxes(START + (step - behind) * period, IDS, BOXES)
    ros_graph.spin_until(lambda: len(received) >= frames, what="the frames of the slow detector")
    assert [stamp_of(message) for message in received if message.header.frame_id == "right"] == [
        START + step * period for step in range(frames)
    ]
    assert {message.header.frame_id for message in received} == {"right"}
    lost = "dropped_detections_before_image"
    ros_graph.spin_until(lambda: counted(diagnostics, "left", lost) == frames - ahead, what="the losses")
    said = [status.message for message in diagnostics for status in message.status]
    # -0.2, and more where images are slow: what a busy machine adds looks the same
    assert any(re.search(r"set left\.time_offset to -0\.[2-9]", words) for words in said), said


def test_parameters_describe_themselves_and_bad_changes_are_refused_with_a_reason(
    ros_graph, make_node, listener
):
    make_node().start()
    request = DescribeParameters.Request(names=["sync_tolerance", "fuser", "queue_depth", "model"])
    answer = ros_graph.call(listener, DescribeParameters, "/perception/describe_parameters", request)
    assert all(descriptor.description for descriptor in answer.descriptors)
    assert answer.descriptors[0].floating_point_range[0].to_value == 1.0
    assert ros_graph.set_parameter("perception", "fuser", "last").successful
    for name, value, says in (
        ("fuser", "no_such_fuser", "no_such_fuser"),
        ("window", 0, "window"),
        ("identity", "planet", "planet"),
        ("clock_jump", 0.2, "clock_jump"),
        ("model", "other.safetensors", "cannot change"),
        ("device", "cuda", "cannot change"),
        ("cameras", ["third"], "cannot change"),
    ):
        result = ros_graph.set_parameter("perception", name, value)
        assert not result.successful and says in result.reason, (name, result.reason)
    assert ros_graph.set_parameter("perception", "window", 100).successful
    result = ros_graph.set_parameter("perception", "fuser", "wls")
    assert not result.successful and "set a smaller 'window'" in result.reason, result.reason


def test_a_change_of_fuser_takes_effect_on_the_next_frame_and_reset_forgets(
    ros_graph, make_node, listener, bundle
):
    make_node(fuser="mean_pmf").start()
    camera = CameraOnGraph(listener, "left")
    received = connect(ros_graph, listener, camera)

    def send(step: int) -> np.ndarray:
        camera.send(START + step * TENTH, scene(step), IDS, BOXES)
        ros_graph.spin_until(lambda: len(received) == step + 1, what="the fused frame")
        return np.array([pmf_of(detection) for detection in received[-1].detections])

    def alone(step: int) -> np.ndarray:
        return reference(bundle, [("left", START + step * TENTH, scene(step), IDS, BOXES)])[0].pmf

    send(0)
    assert not np.allclose(send(1), alone(1), atol=1e-5)  # two frames are fused
    assert ros_graph.set_parameter("perception", "fuser", "last").successful
    np.testing.assert_allclose(send(2), alone(2), atol=1e-5)
    assert ros_graph.set_parameter("perception", "fuser", "mean_pmf").successful
    send(3)
    assert ros_graph.call(listener, Trigger, "/perception/reset", Trigger.Request()).success
    np.testing.assert_allclose(send(4), alone(4), atol=1e-5)


def test_warnings_end_with_an_ok_when_a_change_of_fuser_or_a_reset_forgets_their_tracks(
    ros_graph, make_node, listener
):
    make_node(model="signworld", min_views=1, ood_false_alarm=0.5).start()
    camera = CameraOnGraph(listener, "left")
    connect(ros_graph, listener, camera)
    messages = ros_graph.collect(listener, DiagnosticArray, "/ood_warnings", 100)

    def warned() -> dict[str, bool]:
        """By track, whether the last word about it was a warning."""
        statuses = [status for message in messages for status in message.status]
        return {status.name: status.level != DiagnosticStatus.OK for status in statuses}

    for step, forget in enumerate(
        (
            lambda: ros_graph.set_parameter("perception", "fuser", "last").successful,
            lambda: ros_graph.call(listener, Trigger, "/perception/reset", Trigger.Request()).success,
        )
    ):
        camera.send(START + step * TENTH, scene(step), IDS, BOXES)
        ros_graph.spin_until(lambda: any(warned().values()), what="a warning of noise")
        assert forget()
        ros_graph.spin_until(lambda: not any(warned().values()), what="the end of all warnings")


def test_a_silent_camera_is_reported_and_the_other_goes_on(ros_graph, make_node, listener):
    make_node(silent_after=0.3).start()
    left = CameraOnGraph(listener, "left")
    received = connect(ros_graph, listener, left)
    diagnostics = ros_graph.collect(listener, DiagnosticArray, "/diagnostics", 100)

    def says(camera: str, text: str) -> bool:
        statuses = [status for message in diagnostics for status in message.status]
        return any(status.name.endswith(f"camera {camera}") and text in status.message for status in statuses)

    ros_graph.spin_until(lambda: says("right", "nothing received yet"), what="the silent camera")
    left.send(START, scene(0), IDS, BOXES)
    ros_graph.spin_until(lambda: received, what="the fused frame of the other camera")
    ros_graph.spin_until(lambda: says("left", "silent for"), what="the camera that fell silent")


def test_annotated_images_and_views_are_made_only_while_somebody_listens(ros_graph, make_node, listener):
    make_node().start()
    camera = CameraOnGraph(listener, "left")
    received = connect(ros_graph, listener, camera)
    camera.send(START, scene(0), IDS, BOXES)
    ros_graph.spin_until(lambda: received, what="the fused frame")
    annotated = ros_graph.collect(listener, Image, "/left/annotated", 10)
    embeddings = ros_graph.collect(listener, Image, "/left/views/embeddings", 10)
    ros_graph.wait_for_publishers(listener, "/left/annotated")
    step = 0
    while not (annotated and embeddings):  # until the node has discovered this subscription
        step += 1
        camera.send(START + step * TENTH, scene(0), IDS, BOXES)
        ros_graph.spin_until(lambda count=step + 1: len(received) == count, what="the fused frame")
    drawn = np.frombuffer(annotated[0].data, np.uint8).reshape(60, 80, 3)
    assert annotated[0].encoding == "bgr8" and (drawn != scene(0)[..., ::-1]).any()
    assert embeddings[0].encoding == "32FC1" and embeddings[0].height == len(IDS)


def test_foxglove_gets_boxes_and_words_of_the_installed_type_while_it_listens(ros_graph, make_node, listener):
    messages = pytest.importorskip("foxglove_msgs.msg", reason="foxglove_msgs is not installed")
    node = make_node()
    node.start()
    camera = CameraOnGraph(listener, "left")
    received = connect(ros_graph, listener, camera)
    assert not node.outputs.wanted("left/annotations")
    drawn = ros_graph.collect(listener, messages.ImageAnnotations, "/left/annotations", 10)
    ros_graph.wait_for_publishers(listener, "/left/annotations")
    step = 0
    while not drawn:  # until the node has discovered this subscription
        step += 1
        camera.send(START + step * TENTH, scene(0), IDS, BOXES)
        ros_graph.spin_until(lambda count=step: len(received) == count, what="the fused frame")
    first = drawn[0]
    (frame,) = [each for each in received if stamp_of(each) == stamp_at(first.points[0].timestamp)]
    assert len(first.points) == len(first.texts) == len(IDS) and not first.circles
    for box, text, detection, name, (cx, cy, width, height) in zip(
        first.points, first.texts, frame.detections, IDS, BOXES, strict=True
    ):
        corners = [(point.x, point.y) for point in box.points]
        assert box.type == messages.PointsAnnotation.LINE_LOOP
        assert min(corners) == (cx - width / 2, cy - height / 2) == (text.position.x, text.position.y)
        assert max(corners) == (cx + width / 2, cy + height / 2)
        assert text.text.startswith(f"{name}: class {detection.results[0].hypothesis.class_id} ")
        assert box.outline_color.a == 1.0 and text.font_size > 0


def stamp_at(time) -> int:
    return time.sec * SECOND + time.nanosec


def test_the_lifecycle_can_be_managed_from_outside(ros_graph, make_node, listener):
    make_node(autostart=False)
    camera = CameraOnGraph(listener, "left")

    def change(transition: int) -> None:
        request = ChangeState.Request(transition=Transition(id=transition))
        assert ros_graph.call(listener, ChangeState, "/perception/change_state", request).success

    def state() -> str:
        answer = ros_graph.call(listener, GetState, "/perception/get_state", GetState.Request())
        return answer.current_state.label

    assert state() == "unconfigured"
    assert ros_graph.set_parameter("perception", "silent_after", 2.0).successful  # free before configure
    change(Transition.TRANSITION_CONFIGURE)
    change(Transition.TRANSITION_ACTIVATE)
    received = connect(ros_graph, listener, camera)
    camera.send(START, scene(0), IDS, BOXES)
    ros_graph.spin_until(lambda: received, what="a fused frame while active")
    change(Transition.TRANSITION_DEACTIVATE)
    assert state() == "inactive"
    ros_graph.spin_until(lambda: camera.images.get_subscription_count() == 0, what="no subscription left")
    change(Transition.TRANSITION_CLEANUP)
    change(Transition.TRANSITION_CONFIGURE)
    change(Transition.TRANSITION_ACTIVATE)
    ros_graph.wait_for_subscribers(camera.images)
    ros_graph.wait_for_subscribers(camera.detections)
    ros_graph.wait_for_publishers(listener, "/fused_classes")
    camera.send(START, scene(0), IDS, BOXES)
    ros_graph.spin_until(lambda: len(received) == 2, what="a fused frame after a new start")


def test_a_best_effort_camera_is_heard_without_any_setting(ros_graph, make_node, listener):
    make_node().start()
    sensor_qos = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
    camera = CameraOnGraph(listener, "left", qos=sensor_qos)
    received = connect(ros_graph, listener, camera)
    camera.send(START, scene(0), IDS, BOXES)
    ros_graph.spin_until(lambda: received, what="the fused frame")


def test_a_camera_that_comes_back_with_another_transport_is_heard_again(ros_graph, make_node, listener):
    make_node(silent_after=0.2).start()
    raw = CameraOnGraph(listener, "left")
    received = connect(ros_graph, listener, raw)
    raw.send(START, scene(0), IDS, BOXES)
    ros_graph.spin_until(lambda: received, what="the fused raw frame")
    listener.destroy_publisher(raw.images)
    compressed = CameraOnGraph(listener, "left", "jpeg")
    ros_graph.wait_for_subscribers(compressed.images)
    compressed.send(START + TENTH, scene(1), IDS, BOXES)
    ros_graph.spin_until(lambda: len(received) == 2, what="the fused compressed frame")


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"model": "/nowhere/x.safetensors"}, "/nowhere/x.safetensors"),
        ({"model": ""}, "'model' is not set.*: belgium, gtsrb, signworld"),
        ({"device": "cuda:7"}, "CUDA"),
        ({"device": "abacus"}, "abacus"),
        ({"fuser": "no_such_fuser"}, "no_such_fuser"),
    ],
)
def test_a_node_that_cannot_work_refuses_to_start_with_a_sentence(make_node, parameters, says):
    with pytest.raises(LlaFusionError, match=says):
        make_node(**parameters).start()


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"sync_tolerance": -1.0}, "sync_tolerance"),
        ({"window": "ten"}, "window"),
        ({"cameras": ["a", "a"]}, "cameras"),
        ({"cameras": ["no good"]}, "no good"),
        ({"image_transport": "pigeon"}, "pigeon"),
        ({"fusor": "wls"}, "no parameter 'fusor', did you mean 'fuser'?"),
        ({"left.time_ofset": 0.1}, "did you mean 'left.time_offset'?"),
        ({"left.box_frame": "letterbox"}, "camera left: .* set 'box_size' to the width and height"),
        ({"left.box_frame": "stretch", "left.box_size": [640]}, "camera left: setting 'box_size' is .640,."),
        ({"left.box_size": "large"}, "camera left: setting 'box_size' is 'large'"),
        ({"left.image_topic": "a b"}, "camera left: .*topic name"),
    ],
)
def test_a_bad_parameter_is_refused_at_start_with_its_name(make_node, parameters, says):
    with pytest.raises(InputError, match=says):
        make_node(**parameters)


def test_classes_that_carry_the_probability_are_listed_and_the_rest_is_declared(make_node, ros_graph):
    node = make_node(cameras=["left"], listed_mass=0.6)
    node.start()
    camera = CameraOnGraph(ros_graph.node("camera"), "left")
    received = ros_graph.collect(node, Detection2DArray, "/fused_classes", 50)
    ros_graph.wait_for_subscribers(camera.images)
    ros_graph.wait_for_subscribers(camera.detections)
    for step, mass in enumerate((0.6, 1.0)):
        assert ros_graph.set_parameter("perception", "listed_mass", mass).successful
        camera.send(START + step * TENTH, scene(0), ("a",), BOXES[:1])
        ros_graph.spin_until(lambda count=step: len(received) > count, what="a fused frame")
        listed = [result.hypothesis for result in received[-1].detections[0].results]
        scores = [hypothesis.score for hypothesis in listed]
        assert sum(scores) == pytest.approx(1.0)
        if mass == 1.0:
            assert sorted(hypothesis.class_id for hypothesis in listed) == list("0123")
        else:
            assert listed[-1].class_id == "" and len(listed) < 5
            assert sum(scores[:-1]) >= mass > sum(scores[:-2])


def test_the_name_that_identity_had_is_still_understood(make_node, perception_node, model):
    node = perception_node(model=model, cameras=["left"], track_id_scope="camera")
    assert node.parameters.of(StreamSettings).identity == "camera"
    both = make_node(identity="auto", track_id_scope="camera")
    assert both.parameters.of(StreamSettings).identity == "auto"  # today's name counts more


def test_a_half_life_is_taken_as_a_hazard(make_node, perception_node, model):
    node = perception_node(model=model, cameras=["left"], class_half_life=0.5)
    assert node.parameters.of(FusionSettings).class_hazard == 2.0


def test_sets_decisions_and_the_status_of_every_object_are_there_for_a_planner(
    ros_graph, make_node, listener, bundle, tmp_path
):
    names, objects = bundle.class_names, 2
    limits = [[5.0, 5.0, 5.0, None, None, None]] * 3  # only 95% can be promised: classes of p >= e^-5
    calibrated = Reliance.from_dict(
        {
            "groups": [1, 3, 10],
            "coverages": [0.8, 0.9, 0.95, 0.98, 0.99, 0.995],
            "objects": [30, 30, 30],
            "thresholds": limits,
            "edges": [],
            "bounds": [0.25],
        }
    )
    file, costs = tmp_path / "reliant.safetensors", tmp_path / "costs.yaml"
    save_bundle(replace(bundle, meta=replace(bundle.meta, reliance=calibrated.as_dict())), file)
    costs.write_text("wait: {otherwise: 1}\ngo: {otherwise: 100}\n")
    make_node(model=str(file), costs=str(costs)).start()
    camera = CameraOnGraph(listener, "left")
    received = connect(ros_graph, listener, camera)
    kinds = {
        "/track_status": DiagnosticArray,
        "/class_sets": Detection2DArray,
        "/decisions": Detection2DArray,
    }
    heard = {topic: ros_graph.collect(listener, kind, topic, 10) for topic, kind in kinds.items()}
    for topic in kinds:
        ros_graph.wait_for_publishers(listener, topic)
    step = 0
    while not all(heard.values()):  # until the node has discovered these subscriptions
        camera.send(START + step * TENTH, scene(0), IDS, BOXES)
        step += 1
        ros_graph.spin_until(lambda count=step: len(received) == count, what="the fused frame")
    fused = {stamp_of(message): message for message in received}
    sets = heard["/class_sets"][0]
    for own, whole in zip(sets.detections, fused[stamp_of(sets)].detections, strict=True):
        inside = [r.hypothesis.class_id for r in whole.results if r.hypothesis.score >= np.exp(-5.0)]
        assert [r.hypothesis.class_id for r in own.results] == inside
    for detection in heard["/decisions"][0].detections:
        (result,) = detection.results
        assert result.hypothesis.class_id == "wait" and result.hypothesis.score == pytest.approx(1.0)
    status = heard["/track_status"][0].status
    assert [s.name for s in status] == ["track a", "track b"] and len(status) == objects
    values = {value.key: value.value for value in status[0].values}
    assert (values["answer"], values["error at most"], values["coverage"]) == ("known", "0.250000", "0.95")
    assert values["top class"] in names and values["class changed"] == "no"
    assert set(values["set"].split("; ")) <= {*names, "any"}


def test_a_frame_is_published_before_the_next_one_is_fused(make_node):
    done = []

    def fuse(frames):
        done.extend(f"fused {frame}" for frame in frames)
        return frames

    frames = make_node().step(SimpleNamespace(views=lambda: ["left", "right"], fuse=fuse))
    for frame in frames:
        done.append(f"sent {frame}")
    assert done == ["fused left", "sent left", "fused right", "sent right"]


def test_the_executor_looks_at_one_event_of_a_subscription_and_at_none_of_an_output(make_node):
    node = make_node()
    before = len(list(node.waitables))
    node.start()
    assert len(list(node.waitables)) - before <= len(list(node.subscriptions)) + 1  # two of /tf_static
