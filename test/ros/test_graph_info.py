"""`lla-fusion info` on a running graph: what it finds, what it proposes, and its exit code."""

from __future__ import annotations

import json
from threading import Event, Thread

import pytest
from sensor_msgs.msg import Image
from std_msgs.msg import String

from lla_fusion_ros.cli.main import main
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.images import write_image
from support.camera import BOXES, SECOND, START, CameraOnGraph, scene

IMAGE = scene(0)


def told(capsys, *words: str) -> tuple[int, dict]:
    code = main(["info", "--seconds", "1.5", "--json", *words])
    return code, json.loads(capsys.readouterr().out)


@pytest.fixture
def publish():
    """Publishes frames in the background until the test is over."""
    over, threads = Event(), []

    def run(send) -> None:
        def loop() -> None:
            step = 0
            while not over.wait(0.05):
                send(START + step * SECOND // 20)
                step += 1

        threads.append(Thread(target=loop))
        threads[-1].start()

    yield run
    over.set()
    for thread in threads:
        thread.join()


def test_cameras_are_found_measured_and_a_launch_command_is_proposed(ros_graph, capsys, publish):
    node = ros_graph.node("cameras")
    front, rear = CameraOnGraph(node, "front"), CameraOnGraph(node, "rear/rgb", "png")
    node.create_publisher(String, "/other", 10)
    crops = node.create_publisher(Image, "/gate/crops", 10)
    publish(lambda stamp: crops.publish(write_image(Header(stamp, "7"), IMAGE, "rgb8")))
    publish(lambda stamp: front.send(stamp, IMAGE, ("1", "2"), BOXES))
    publish(lambda stamp: rear.send(stamp, IMAGE, ("", ""), BOXES))
    code, found = told(capsys)
    assert (code, found["can_be_fused"], found["missing"]) == (0, True, [])
    cameras = {camera["name"]: camera for camera in found["cameras"]}
    assert set(cameras) == {"front", "rear/rgb", "gate"}
    assert (cameras["gate"]["detections"], cameras["gate"]["image"]) == ("", "/gate/crops")
    one = cameras["front"]
    assert 5 < one["image_rate"] < 25 and 5 < one["detections_rate"] < 25
    assert (one["image_size"], one["boxes"], one["offset"]) == ([80, 60], [12, 12, 70, 46], 0)
    assert one["image_qos"] == "reliable" and "ids of the messages" in one["chosen"]
    assert "ids of the built-in tracker" in cameras["rear/rgb"]["chosen"]
    assert found["command"].endswith("fusion.launch.py model:=YOURS cameras:=front,rear/rgb,gate")
    assert main(["info", "--seconds", "1"]) == 0
    text = capsys.readouterr().out
    assert "can be fused: yes" in text and "launch    ros2 launch lla_fusion_ros" in text


def test_what_is_missing_is_said_with_its_cure_and_the_exit_code_tells(ros_graph, capsys, publish):
    node = ros_graph.node("cameras")
    code, found = told(capsys)
    assert code == 1 and found["command"] == ""
    assert any("nobody publishes detections" in text for text in found["missing"])
    late = CameraOnGraph(node, "late")

    def send(stamp: int) -> None:
        late.send_image(stamp, IMAGE)
        late.send_boxes(stamp + SECOND // 50, ("1", "2"), BOXES)

    publish(send)
    code, found = told(capsys)
    assert code == 1
    assert found["missing"] == [
        "late: stamps of detections are +0.020 s from the images'; set late.time_offset: -0.020"
    ]
