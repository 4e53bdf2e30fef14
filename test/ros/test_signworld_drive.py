"""A sign-world drive over DDS through the real node: better than each camera alone, and right warnings."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from vision_msgs.msg import Detection2DArray

from support.camera import SECOND, CameraOnGraph, pmf_of, stamp_of
from support.drive import HARD_FROM, SWITCH_TIME, SWITCHED, UNKNOWN, short_drive

KNOWN = ("001", "004", "005")  # ordinary signs, seen well before the hard stretch
FRAMES_TO_NOTICE = 5
CLASSES = 20


def seconds(stamp: int) -> float:
    return (stamp - short_drive()[0].stamp) / SECOND


def reasons(status: DiagnosticStatus) -> str:
    return next((pair.value for pair in status.values if pair.key == "reason"), "")


def test_two_cameras_fused_beat_each_alone_and_warnings_are_right(ros_graph, ros_process):
    frames = short_drive()
    ros_process(
        "lla_fusion_ros.ros perception",
        params={"model": "signworld", "cameras": ["left", "right"], "identity": "global", "device": "cpu"},
        name="perception",
    )
    node = ros_graph.node("vehicle")
    cameras = {"left": CameraOnGraph(node, "left"), "right": CameraOnGraph(node, "right", "jpeg")}
    fused = ros_graph.collect(node, Detection2DArray, "/fused_classes", 100)
    warned = ros_graph.collect(node, DiagnosticArray, "/ood_warnings", 1000)
    views = {name: ros_graph.collect(node, Detection2DArray, f"/{name}/views", 100) for name in cameras}
    for camera in cameras.values():
        ros_graph.wait_for_subscribers(camera.images)
        ros_graph.wait_for_subscribers(camera.detections)
        ros_graph.wait_for_publishers(node, f"/{camera.name}/views")
    ros_graph.wait_for_publishers(node, "/fused_classes")
    ros_graph.wait_for_publishers(node, "/ood_warnings")
    right: dict[str, list[bool]] = defaultdict(list)
    last_right: dict[str, bool] = {}
    for frame in frames:
        cameras[frame.camera].send(frame.stamp, frame.image, frame.ids, frame.boxes)
        truth = dict(zip(frame.ids, frame.labels, strict=True))
        for name, received in (("fused", fused), (frame.camera, views[frame.camera])):
            ros_graph.spin_until(
                lambda received=received, stamp=frame.stamp: received and stamp_of(received[-1]) == stamp,
                what=f"{name} of the frame at {seconds(frame.stamp):.2f} s",
            )
            for detection in received[-1].detections:
                if truth[detection.id] >= 0:
                    is_right = int(pmf_of(detection, CLASSES).argmax()) == truth[detection.id]
                    right[name].append(is_right)
                    if name == "fused":
                        last_right[detection.id] = is_right
    accuracy = {name: float(np.mean(values)) for name, values in right.items()}
    assert accuracy["fused"] > max(accuracy["left"], accuracy["right"]), accuracy
    statuses = [(stamp_of(message), status) for message in warned for status in message.status]
    check_warnings(statuses)
    # the tracks started again: what was learnt about the other object is gone
    assert all(last_right[name] for name in SWITCHED), last_right


def check_warnings(statuses: list[tuple[int, DiagnosticStatus]]) -> None:
    unknown = [status for _, status in statuses if status.name == f"track {UNKNOWN}"]
    assert any("out_of_distribution" in reasons(status) for status in unknown)
    early = {status.name for stamp, status in statuses if seconds(stamp) < HARD_FROM - 0.2}
    assert not early & {f"track {name}" for name in KNOWN}, early
    after = [frame for frame in short_drive() if frame.switched.any()]
    assert seconds(after[0].stamp) >= SWITCH_TIME
    for name in SWITCHED:
        seen = [frame.stamp for frame in after if name in frame.ids]
        flagged = [
            stamp
            for stamp, status in statuses
            if status.name == f"track {name}" and "identity_switch" in reasons(status)
        ]
        assert flagged and min(flagged) <= seen[:FRAMES_TO_NOTICE][-1], (name, flagged[:1], seen)
        assert min(flagged) >= seen[0], f"track {name} was flagged before it changed"
