"""Two cameras with trackers of their own, over DDS: joined by geometry, or apart with a reason."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import cv2
import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import CameraInfo, CompressedImage
from vision_msgs.msg import Detection2DArray, Detection3DArray

from lla_fusion_ros.lab.makebag.write import drive_frames
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.detections import write_detections
from lla_fusion_ros.messages.geometry import write_camera_info, write_transforms
from lla_fusion_ros.messages.images import write_compressed_image
from lla_fusion_ros.signworld import Drive, DriveSettings
from lla_fusion_ros.signworld.geometry import optical_frame, rig_of
from lla_fusion_ros.types.errors import LlaFusionError
from support.objects_in_space import boxes_in_space

tf2 = pytest.importorskip("tf2_msgs.msg", reason="tf2_msgs is built by `make setup` without a sourced ROS")

DRIVE = Drive(DriveSettings(seed=3, duration=2.5))


@pytest.fixture(scope="module")
def frames():
    return list(drive_frames(DRIVE))


def play(
    ros_graph, vehicle, listener, frames, say_transforms: bool = True, things=(), lens: str = "plumb_bob"
) -> tuple[list, list]:
    """Send the drive with boxes that have no ids; what was fused, and the diagnostics."""
    rig = rig_of(DRIVE)
    infos = {camera: write_camera_info(replace(info, model=lens)) for camera, info in rig.infos.items()}
    static = vehicle.create_publisher(
        tf2.TFMessage, "/tf_static", QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    )
    moving = vehicle.create_publisher(tf2.TFMessage, "/tf", 50)
    kinds = {"image/compressed": CompressedImage, "detections": Detection2DArray, "camera_info": CameraInfo}
    senders = {
        (camera, topic): vehicle.create_publisher(kind, f"/{camera}/{topic}", 50)
        for camera in DRIVE.camera_names
        for topic, kind in kinds.items()
    }
    space = vehicle.create_publisher(Detection3DArray, "/lidar/objects", 50)
    fused = ros_graph.collect(listener, Detection2DArray, "/fused_classes", 200)
    told = ros_graph.collect(listener, DiagnosticArray, "/diagnostics", 50)
    for sender in (*senders.values(), moving, static, *([space] if things else [])):
        ros_graph.wait_for_subscribers(sender)
    ros_graph.wait_for_publishers(listener, "/fused_classes")
    if say_transforms:
        static.publish(write_transforms(rig.mounts))
    for number, frame in enumerate(frames):
        header = Header(frame.stamp, optical_frame(frame.camera))
        moving.publish(write_transforms([rig.vehicle(frame.stamp)]))
        senders[frame.camera, "camera_info"].publish(infos[frame.camera])
        if things:
            space.publish(boxes_in_space(frame.stamp, "odom", things))
        data = cv2.imencode(".jpg", frame.image[..., ::-1])[1].tobytes()
        senders[frame.camera, "image/compressed"].publish(write_compressed_image(header, data, "jpeg"))
        boxes = np.insert(frame.boxes, 2, 0.0, axis=1)
        senders[frame.camera, "detections"].publish(write_detections(header, ("",) * len(boxes), boxes))
        ros_graph.spin_until(lambda number=number: len(fused) >= number - 4)
    ros_graph.spin_until(lambda: len(fused) == len(frames))
    return fused, told


@pytest.fixture
def make_node(perception_node, model):
    return partial(perception_node, model=model, cameras=list(DRIVE.camera_names), queue_depth=200)


def objects(fused, frames) -> set[tuple[str, str]]:
    """Camera and object of everything in the last ten frames of each."""
    cameras = {(frame.stamp): frame.camera for frame in frames}
    found = set()
    for message in fused[-20:]:
        stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
        found |= {(cameras[stamp], each.id) for each in message.detections}
    return found


def value(told, camera: str, key: str) -> str:
    for message in reversed(told):
        for status in message.status:
            if status.name.endswith(f"camera {camera}"):
                return {pair.key: pair.value for pair in status.values}.get(key, "")
    return ""


def test_objects_of_two_cameras_are_one_where_geometry_says_so(
    ros_graph, make_node, detector, listener, frames
):
    node = make_node()
    node.start()
    fused, told = play(ros_graph, detector, listener, frames)
    found = objects(fused, frames)
    shared = {name for camera, name in found if camera == "left"} & {n for c, n in found if c == "right"}
    assert len(shared) >= 2, found
    assert node.perception.joining.association.joins >= 2
    ros_graph.spin_until(lambda: value(told, "right", "geometry").startswith("joined"))


def test_the_log_does_not_count_what_diagnostics_count(
    ros_graph, make_node, detector, listener, frames, capfd
):
    make_node(idle_timeout=0.2).start()
    _, told = play(ros_graph, detector, listener, frames)
    ended = "joined with other cameras: 0 of 0"
    ros_graph.spin_until(lambda: value(told, "left", "geometry").partition(ended)[0] != "")
    log = capfd.readouterr().err
    assert log.count("camera left, first frame:") == 1
    assert log.count("camera left, from now on:") <= 1, "once transforms are there"


def test_without_transforms_cameras_stay_apart_and_the_reason_is_told(
    ros_graph, make_node, detector, listener, frames
):
    node = make_node()
    node.start()
    fused, told = play(ros_graph, detector, listener, frames[:30], say_transforms=False)
    assert all(name.startswith(camera) for camera, name in objects(fused, frames))
    assert node.perception.joining.association.joins == 0
    ros_graph.spin_until(lambda: "no transform leads" in value(told, "right", "geometry"))


def test_names_from_messages_cannot_steer_the_terminal_of_a_node(
    ros_graph, make_node, detector, listener, frames, capfd
):
    make_node().start()
    _, told = play(ros_graph, detector, listener, frames[:10], lens="\x1b[2Jfisheye")
    ros_graph.spin_until(lambda: "fisheye" in value(told, "left", "geometry"))
    log = capfd.readouterr().err
    assert "\\x1b[2Jfisheye" in log and "\x1b[2J" not in log


def test_objects_in_space_name_the_boxes_of_all_cameras(ros_graph, make_node, detector, listener, frames):
    (thing, *_) = [each for each in DRIVE.objects if all(each.id in frame.ids for frame in frames[20:30])]
    node = make_node(objects_topic="lidar/objects")
    node.start()
    fused, told = play(ros_graph, detector, listener, frames[:30], things=[thing])
    found = objects(fused, frames)
    assert {("left", f"object {thing.id}"), ("right", f"object {thing.id}")} <= found
    assert any(name.startswith("left/") for _, name in found)  # boxes that no object overlaps
    ros_graph.spin_until(lambda: value(told, "right", "objects topic") == "/lidar/objects")
    assert node.tally.of("")["object_messages"] >= 29  # DDS may lose the first, while it finds the sender


@pytest.mark.parametrize("topic", ["two words", "/"])
def test_a_topic_of_objects_that_cannot_be_is_refused(ros_graph, make_node, topic):
    with pytest.raises(LlaFusionError, match="objects_topic"):
        make_node(objects_topic=topic).start()
