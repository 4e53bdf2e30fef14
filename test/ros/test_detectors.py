"""Detections of other detectors, over DDS with their own messages: types, ids, topics, and what is said.

The detectors are DDS participants of their own: in one participant a topic has one type.
"""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from sensor_msgs.msg import CompressedImage, Image, RegionOfInterest
from std_msgs.msg import String
from vision_msgs.msg import Detection2DArray

from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.detections import write_detections
from support.camera import BOXES, SECOND, START, TENTH, CameraOnGraph, pmf_of, scene, stamp_of
from support.reference import reference

yolo = pytest.importorskip("yolo_msgs.msg", reason="yolo_msgs is built by `make setup` without a sourced ROS")
tier4 = pytest.importorskip("tier4_perception_msgs.msg", reason="built by `make setup`, as yolo_msgs")


@pytest.fixture
def make_node(perception_node, model):
    return partial(perception_node, model=model, cameras=["left", "right"], listed_mass=1.0)


def stamped(message, stamp: int, frame_id: str = "left"):
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, SECOND)
    message.header.frame_id = frame_id
    return message


def yolo_message(stamp: int, ids, boxes, frame_id: str = "left"):
    message = stamped(yolo.DetectionArray(), stamp, frame_id)
    for name, (x, y, width, height) in zip(ids, np.asarray(boxes, float), strict=True):
        detection = yolo.Detection(class_id=1, class_name="sign", score=0.9, id=name)
        detection.bbox.center.position.x, detection.bbox.center.position.y = x, y
        detection.bbox.size.x, detection.bbox.size.y = width, height
        message.detections.append(detection)
    return message


def traffic_lights(stamp: int, ids, boxes, frame_id: str):
    message = stamped(tier4.TrafficLightRoiArray(), stamp, frame_id)
    for number, (x, y, width, height) in zip(ids, np.asarray(boxes, int).tolist(), strict=True):
        roi = RegionOfInterest(x_offset=x - width // 2, y_offset=y - height // 2, width=width, height=height)
        message.rois.append(tier4.TrafficLightRoi(roi=roi, traffic_light_id=number))
    return message


def ids_of(message) -> tuple[str, ...]:
    return tuple(detection.id for detection in message.detections)


def status_of(diagnostics, camera: str) -> DiagnosticStatus | None:
    for message in reversed(diagnostics):
        for status in message.status:
            if status.name.endswith(f"camera {camera}"):
                return status
    return None


def values_of(diagnostics, camera: str) -> dict[str, str]:
    status = status_of(diagnostics, camera)
    return {} if status is None else {pair.key: pair.value for pair in status.values}


def connect(graph, node, *publishers, topic="/fused_classes"):
    received = graph.collect(node, Detection2DArray, topic, 100)
    for publisher in publishers:
        graph.wait_for_subscribers(publisher)
    graph.wait_for_publishers(node, topic)
    return received


def test_yolo_ros_on_its_own_topics_with_images_compressed_beside_a_remapped_name(
    ros_graph, make_node, detector, listener, bundle, capfd
):
    arguments = ["--ros-args", "-r", "left/image:=/cam/image_raw"]
    make_node(*arguments, cameras=["left"], **{"left.detections_topic": "/yolo/tracking"}).start()
    images = detector.create_publisher(CompressedImage, "/cam/image_raw/compressed", 50)
    boxes = detector.create_publisher(yolo.DetectionArray, "/yolo/tracking", 50)
    fused = connect(ros_graph, listener, images, boxes)
    own = ros_graph.collect(listener, Detection2DArray, "/left/fused_classes", 100)
    ros_graph.wait_for_publishers(listener, "/left/fused_classes")
    diagnostics = ros_graph.collect(listener, DiagnosticArray, "/diagnostics", 100)
    frames = [("left", START + step * TENTH, scene(step), ("left/7", "left/9"), BOXES) for step in range(3)]
    for count, (_, stamp, image, _, _) in enumerate(frames, 1):
        images.publish(png(stamp, image))
        boxes.publish(yolo_message(stamp, ("7", "9"), BOXES))
        ros_graph.spin_until(lambda count=count: len(fused) == count, what="the fused frame")
    for message, expected in zip(fused, reference(bundle, frames), strict=True):
        assert ids_of(message) == expected.ids
        for row, detection in enumerate(message.detections):
            np.testing.assert_allclose(pmf_of(detection), expected.pmf[row], atol=1e-5)
    ros_graph.spin_until(lambda: own, what="the fused classes of the camera")
    assert ids_of(own[-1]) == ("7", "9")
    kind = "yolo_msgs/msg/DetectionArray"
    ros_graph.spin_until(lambda: values_of(diagnostics, "left").get("ids from") == "the messages")
    values = values_of(diagnostics, "left")
    assert (values["detections type"], values["detections topic"]) == (kind, "/yolo/tracking")
    assert values["image topic"] == "/cam/image_raw/compressed"
    log = capfd.readouterr().err
    assert "waiting for /cam/image_raw, /yolo/tracking" in log
    assert log.count("camera left, first frame: images of /cam/image_raw/compressed") == 1
    assert (
        f"boxes of /yolo/tracking ({kind}), ids from the messages, an id is an object of this camera" in log
    )


def png(stamp: int, image: np.ndarray) -> CompressedImage:
    import cv2

    data = cv2.imencode(".png", image[..., ::-1])[1].tobytes()
    return stamped(CompressedImage(format="png", data=data), stamp)


def test_lights_of_the_map_are_one_object_for_all_cameras(ros_graph, make_node, detector, listener, bundle):
    make_node().start()
    cameras = {name: CameraOnGraph(detector, name) for name in ("left", "right")}
    lights = {}
    for name, camera in cameras.items():
        detector.destroy_publisher(camera.detections)
        lights[name] = detector.create_publisher(tier4.TrafficLightRoiArray, f"{name}/detections", 50)
    publishers = [*lights.values(), *(camera.images for camera in cameras.values())]
    fused = connect(ros_graph, listener, *publishers)
    names = ("left", "right") * 2
    frames = [(name, START + n * TENTH, scene(n), ("4711", "12"), BOXES) for n, name in enumerate(names)]
    for count, (name, stamp, image, _, _) in enumerate(frames, 1):
        cameras[name].send_image(stamp, image)
        lights[name].publish(traffic_lights(stamp, (4711, 12), BOXES, name))
        ros_graph.spin_until(lambda count=count: len(fused) == count, what="the fused frame")
    for message, expected in zip(fused, reference(bundle, frames), strict=True):
        assert ids_of(message) == expected.ids == ("4711", "12")
        np.testing.assert_allclose(pmf_of(message.detections[0]), expected.pmf[0], atol=1e-5)


def test_two_cameras_with_the_same_ids_never_share_evidence(ros_graph, make_node, detector, listener, bundle):
    """Each camera's tracker counts from 1; what one sees must not change what is said of the other's."""
    make_node(queue_depth=100).start()
    cameras = [CameraOnGraph(detector, name) for name in ("left", "right")]
    fused = connect(ros_graph, listener, *(each.images for each in cameras), *(c.detections for c in cameras))
    steps, frames = 500, []
    for step in range(steps):
        for offset, camera in enumerate(cameras):
            stamp, image = START + step * TENTH, scene(2 * step + offset)
            camera.send(stamp, image, ("1", "2"), BOXES)
            ids = tuple(f"{camera.name}/{own}" for own in ("1", "2"))
            frames.append((camera.name, stamp, image, ids, BOXES))
        ros_graph.spin_until(lambda count=2 * step + 2: len(fused) >= count, what="both frames")
    for name in ("left", "right"):
        alone = reference(bundle, [frame for frame in frames if frame[0] == name])
        own = [message for message in fused if message.header.frame_id == name]
        assert len(own) == steps
        for message, expected in zip(own, alone, strict=True):
            assert ids_of(message) == expected.ids
            pmf = [pmf_of(detection) for detection in message.detections]
            np.testing.assert_allclose(pmf, expected.pmf, atol=1e-5)


def test_boxes_without_ids_get_them_from_the_built_in_tracker(
    ros_graph, make_node, detector, listener, bundle
):
    make_node(**{"class_id": "name"}).start()
    camera = CameraOnGraph(detector, "left")
    fused = connect(ros_graph, listener, camera.images, camera.detections)
    own = ros_graph.collect(listener, Detection2DArray, "/left/fused_classes", 100)
    ros_graph.wait_for_publishers(listener, "/left/fused_classes")
    diagnostics = ros_graph.collect(listener, DiagnosticArray, "/diagnostics", 100)
    frames = []
    for step in range(4):
        stamp, boxes = START + step * TENTH, BOXES + [step, 0, 0, 0]
        order = [0, 1] if step % 2 else [1, 0]
        camera.send(stamp, scene(step), ("", ""), boxes[order])
        names = [("left/1", "left/2")[np.flatnonzero(np.array([1, 0]) == row)[0]] for row in order]
        frames.append(("left", stamp, scene(step), names, boxes[order]))
        ros_graph.spin_until(lambda count=step + 1: len(fused) == count, what="the fused frame")
    number = {name: index for index, name in enumerate(bundle.class_names)}
    for message, expected in zip(fused, reference(bundle, frames), strict=True):
        assert ids_of(message) == expected.ids
        for row, detection in enumerate(message.detections):
            for result in detection.results:
                p = expected.pmf[row, number[result.hypothesis.class_id]]
                assert abs(result.hypothesis.score - p) < 1e-5
    ros_graph.spin_until(lambda: own, what="the fused classes of the camera")
    assert set(ids_of(own[-1])) == {"1", "2"}
    ros_graph.spin_until(lambda: values_of(diagnostics, "left").get("ids from") == "the built-in tracker")


def test_a_healthy_detector_with_unsure_boxes_is_well(ros_graph, make_node, detector, listener):
    make_node(cameras=["left"]).start()
    camera = CameraOnGraph(detector, "left")
    fused = connect(ros_graph, listener, camera.images, camera.detections)
    diagnostics = ros_graph.collect(listener, DiagnosticArray, "/diagnostics", 100)
    boxes = np.insert(BOXES, 2, 0.0, axis=1)
    sent, sure = 0, np.array([[0.9], [0.2]])  # the second one never begins a track

    def send() -> None:
        nonlocal sent
        stamp = START + sent * TENTH
        camera.send_image(stamp, scene(0))
        camera.detections.publish(write_detections(Header(stamp, "left"), ("", ""), boxes, sure))
        sent += 1

    def reports() -> list[DiagnosticArray]:
        if len(fused) == sent:
            send()
        return [message for message in diagnostics if "not_tracked" in values_of([message], "left")]

    ros_graph.spin_until(lambda: len(reports()) >= 3, what="reports about boxes that are not tracked")
    told = [status_of([message], "left") for message in reports()]
    assert {(status.level, status.message) for status in told} == {(DiagnosticStatus.OK, "well")}
    assert all(ids_of(message) == ("left/1",) for message in fused)


def test_a_type_that_changes_is_followed_and_one_that_cannot_be_read_is_named(
    ros_graph, make_node, detector, listener, monkeypatch
):
    make_node(cameras=["left"]).start()
    camera = CameraOnGraph(detector, "left")
    fused = connect(ros_graph, listener, camera.images, camera.detections)
    diagnostics = ros_graph.collect(listener, DiagnosticArray, "/diagnostics", 100)

    def says(text: str, level: bytes = DiagnosticStatus.ERROR) -> bool:
        status = status_of(diagnostics, "left")
        return status is not None and status.level == level and text in status.message

    camera.send(START, scene(0), ("1",), BOXES[:1])
    ros_graph.spin_until(lambda: len(fused) == 1, what="the frame of the first detector")
    detector.destroy_publisher(camera.detections)

    other = detector.create_publisher(String, "left/detections", 10)
    ros_graph.spin_until(
        lambda: says("/left/detections: messages of type std_msgs/msg/String cannot be read as detections"),
        what="an unknown type in the diagnostics",
    )
    assert "yolo_msgs/DetectionArray" in status_of(diagnostics, "left").message
    detector.destroy_publisher(other)

    boxes = detector.create_publisher(yolo.DetectionArray, "left/detections", 50)
    with monkeypatch.context() as missing:
        missing.setitem(sys.modules, "yolo_msgs.msg", None)  # as where the package is not installed
        ros_graph.spin_until(
            lambda: says("the Python package yolo_msgs of yolo_msgs/msg/DetectionArray is missing here"),
            what="the missing package in the diagnostics",
        )
    ros_graph.wait_for_subscribers(boxes)
    camera.send_image(START + TENTH, scene(1))
    boxes.publish(yolo_message(START + TENTH, ("1",), BOXES[:1]))
    ros_graph.spin_until(lambda: len(fused) == 2, what="the frame of the second detector")
    assert stamp_of(fused[1]) == START + TENTH
    assert ids_of(fused[0]) == ("left/1",) and ids_of(fused[1]) != ("left/1",), "another tracker's object"
    ros_graph.spin_until(
        lambda: (
            values_of(diagnostics, "left").get("detections type") == "yolo_msgs/msg/DetectionArray"
            and status_of(diagnostics, "left").level != DiagnosticStatus.ERROR
        ),
        what="the trouble to be over",
    )


def test_boxes_in_the_pixels_of_the_detectors_input_are_mapped_to_the_image(
    ros_graph, make_node, detector, listener, bundle
):
    make_node(cameras=["left"], **{"left.box_frame": "stretch", "left.box_size": [40, 120]}).start()
    camera = CameraOnGraph(detector, "left")
    fused = connect(ros_graph, listener, camera.images, camera.detections)
    camera.send(START, scene(0), ("1", "2"), BOXES * [0.5, 2, 0.5, 2])  # the image is 80 x 60
    ros_graph.spin_until(lambda: fused, what="the fused frame")
    (expected,) = reference(bundle, [("left", START, scene(0), ("left/1", "left/2"), BOXES)])
    for row, detection in enumerate(fused[0].detections):
        np.testing.assert_allclose(pmf_of(detection), expected.pmf[row], atol=1e-5)
        assert (detection.bbox.center.position.x, detection.bbox.size_y) == (BOXES[row, 0], BOXES[row, 3])


def test_a_class_in_the_place_of_the_id_is_an_error_and_the_built_in_tracker_takes_over(
    ros_graph, make_node, detector, listener
):
    make_node(cameras=["left"], queue_depth=100).start()
    camera = CameraOnGraph(detector, "left")
    detector.destroy_publisher(camera.detections)
    boxes = detector.create_publisher(yolo.DetectionArray, "left/detections", 50)
    fused = connect(ros_graph, listener, camera.images, boxes)
    diagnostics = ros_graph.collect(listener, DiagnosticArray, "/diagnostics", 100)
    for step in range(25):
        stamp = START + step * TENTH
        camera.send_image(stamp, scene(step))
        boxes.publish(yolo_message(stamp, ("1", "1"), BOXES))  # of class 1
        ros_graph.spin_until(lambda count=step + 1: len(fused) == count, what="the fused frame")
    assert len(set(ids_of(fused[-1]))) == 2, "two objects"

    def says_error() -> bool:
        status = status_of(diagnostics, "left")
        return status.level == DiagnosticStatus.ERROR and "equals the class of its box" in status.message

    ros_graph.spin_until(lambda: diagnostics and says_error(), what="the trap in the diagnostics")


def test_objects_that_come_cut_out_are_fused_without_boxes(ros_graph, make_node, detector, listener, capfd):
    make_node(cameras=["left"], sync_lead=2.0).start()  # a frame is waited for so long
    crops = detector.create_publisher(Image, "left/crops", 50)
    fused = connect(ros_graph, listener, crops)
    for step in range(3):
        for name in ("7", "9"):
            crop = Image(height=60, width=80, encoding="rgb8", step=240, data=scene(step).tobytes())
            crops.publish(stamped(crop, START + step * TENTH, name))
    ros_graph.spin_until(lambda: len(fused) == 3, what="all frames, the last one without a next")
    assert [ids_of(message) for message in fused] == [("left/7", "left/9")] * 3
    assert [stamp_of(message) for message in fused] == [START + step * TENTH for step in range(3)]
    assert (fused[0].detections[0].bbox.size_x, fused[0].detections[0].bbox.size_y) == (80, 60)
    assert "camera left, first frame: crops of /left/crops, ids from the messages" in capfd.readouterr().err


def test_one_topic_of_detections_serves_several_cameras_by_frame_id(ros_graph, make_node, detector, listener):
    shared = {f"{name}.detections_topic": "/all/detections" for name in ("left", "right")}
    make_node(**shared).start()
    images = {name: detector.create_publisher(Image, f"{name}/image", 50) for name in ("left", "right")}
    boxes = detector.create_publisher(yolo.DetectionArray, "/all/detections", 50)
    fused = connect(ros_graph, listener, *images.values())
    ros_graph.wait_for_subscribers(boxes, 2)
    for step, name in enumerate(("left", "right", "left", "right")):
        stamp = START + step // 2 * TENTH  # both cameras at the same time
        message = Image(height=60, width=80, encoding="rgb8", step=240, data=scene(step).tobytes())
        images[name].publish(stamped(message, stamp, f"{name}_optical"))
        ros_graph.spin_until(lambda: True)
        seen = BOXES[:1] if name == "left" else BOXES
        boxes.publish(yolo_message(stamp, [str(n) for n in range(len(seen))], seen, f"{name}_optical"))
        ros_graph.spin_until(lambda count=step + 1: len(fused) == count, what="the fused frame")
    assert [(message.header.frame_id, ids_of(message)) for message in fused] == [
        ("left_optical", ("left/0",)),
        ("right_optical", ("right/0", "right/1")),
    ] * 2


def test_boxes_that_find_no_image_are_told_of_in_the_log(ros_graph, make_node, detector, listener, capfd):
    make_node(cameras=["left"]).start()
    camera = CameraOnGraph(detector, "left")
    connect(ros_graph, listener, camera.images, camera.detections)
    told: list[str] = []

    def sent_until_told() -> bool:
        step = len(told)
        camera.send_boxes(START + step * TENTH, ("1",), BOXES[:1])
        told.append(capfd.readouterr().err)
        return "detections, but no image" in "".join(told)

    ros_graph.spin_until(sent_until_told, what="a warning in the log")
