"""`bag_player` as a real process over real DDS."""

from __future__ import annotations

import signal
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")
from rosgraph_msgs.msg import Clock  # noqa: E402
from sensor_msgs.msg import Image  # noqa: E402
from vision_msgs.msg import Detection2DArray, LabelInfo  # noqa: E402

from lla_fusion_ros.bags.player import PlayClock  # noqa: E402
from lla_fusion_ros.bags.writer import BagWriter  # noqa: E402
from lla_fusion_ros.messages.cdr import Header  # noqa: E402
from lla_fusion_ros.messages.contract import DETECTIONS, IMAGE, LABEL_INFO  # noqa: E402
from lla_fusion_ros.messages.detections import write_detections  # noqa: E402
from lla_fusion_ros.messages.images import write_image  # noqa: E402
from lla_fusion_ros.messages.status import write_label_info  # noqa: E402
from lla_fusion_ros.ros.bag_player import BagPlayer  # noqa: E402
from support.ros import LATCHED  # noqa: E402

PLAYER = "lla_fusion_ros.ros bag_player"
FRAMES = 20
START = 50 * 10**9
STEP = 10**8


@pytest.fixture
def drive(tmp_path):
    """Two seconds of one camera at 10 Hz."""
    with BagWriter(tmp_path / "drive") as writer:
        writer.add("/left/image", IMAGE)
        writer.add("/left/detections", DETECTIONS)
        writer.add("/labels", LABEL_INFO, latched=True)
        writer.write("/labels", START, write_label_info(Header(START, ""), ["stop", "yield"]))
        for frame in range(FRAMES):
            stamp = START + frame * STEP
            header = Header(stamp, "left")
            pixels = np.full((48, 64, 3), frame, np.uint8)
            box = np.array([[10.0, 10.0, 0.0, 5.0, 5.0]])
            writer.write("/left/image", stamp, write_image(header, pixels, "bgr8"))
            writer.write("/left/detections", stamp, write_detections(header, [f"{frame}"], box))
    return tmp_path / "drive"


def test_every_message_arrives_in_order_and_the_clock_runs(ros_graph, ros_process, drive):
    node = ros_graph.node()
    images = ros_graph.collect(node, Image, "/left/image", 50)
    detections = ros_graph.collect(node, Detection2DArray, "/left/detections", 50)
    labels = ros_graph.collect(node, LabelInfo, "/labels", LATCHED)
    clock = ros_graph.collect(node, Clock, "/clock", 1000)
    player = ros_process(PLAYER, str(drive), "--rate", "4", "--wait", "30")
    player.expect_end()  # at the end of the bag
    ros_graph.spin_until(lambda: len(images) == FRAMES and len(detections) == FRAMES, what="all frames")
    ros_graph.spin_until(lambda: "end of bag: 41 messages" in player.log, what="the end")
    assert player.wait() == 0
    assert [image.data[0] for image in images] == list(range(FRAMES))
    assert [array.detections[0].id for array in detections] == [str(frame) for frame in range(FRAMES)]
    assert [each.class_name for each in labels[0].class_map] == ["stop", "yield"]
    times = [each.clock.sec * 10**9 + each.clock.nanosec for each in clock]
    assert times == sorted(times)
    assert times[0] >= START and times[-1] >= START + (FRAMES - 1) * STEP


def test_the_clock_never_runs_past_a_message_and_back():
    ticks = count(0.0, 6e-4)  # every look at the wall clock takes as long as most of the wait
    shown: list[int] = []
    player = SimpleNamespace(
        _play_clock=PlayClock(1.0, now=lambda: next(ticks)),
        _publish_clock=shown.append,
        _spinner=SimpleNamespace(spin_once=lambda timeout_sec: None),
        _tick=0.01,
    )
    player._play_clock.restart(START)
    for due in (START + 1_000_000, START + 1_000_000, START + 9_000_000):
        BagPlayer._wait_until(player, due, SimpleNamespace(pressed=lambda: ""))
        assert shown[-1] == due
    assert shown == sorted(shown) and len(shown) > 5


def test_a_loop_begins_again_with_the_same_stamps(ros_graph, ros_process, drive):
    node = ros_graph.node()
    images = ros_graph.collect(node, Image, "/left/image", 50)
    options = ("--rate", "20", "--loop", "--start", "1.55", "--topics", "/left/image", "--wait", "30")
    player = ros_process(PLAYER, str(drive), *options)
    ros_graph.spin_until(lambda: len(images) >= 16, what="four rounds")
    shown = [image.data[0] for image in images]
    whole = shown.index(16)  # on a busy machine discovery may end within the first round
    assert whole < 4
    assert shown[whole : whole + 12] == [16, 17, 18, 19] * 3
    assert player.stop(signal.SIGINT) == 0
    assert "Traceback" not in player.log


def test_qos_overrides_are_obeyed(ros_graph, ros_process, drive, tmp_path):
    (tmp_path / "qos.yaml").write_text("/left/image: {reliability: best_effort, depth: 3}\n")
    node = ros_graph.node()
    ros_process(PLAYER, str(drive), "--loop", "--qos-overrides", str(tmp_path / "qos.yaml"))
    ros_graph.wait_for_publishers(node, "/left/image")
    ros_graph.wait_for_publishers(node, "/left/detections")

    def reliability(topic: str) -> str:
        return node.get_publishers_info_by_topic(topic)[0].qos_profile.reliability.name

    assert reliability("/left/image") == "BEST_EFFORT"
    assert reliability("/left/detections") == "RELIABLE"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["nowhere"], "does not exist"),
        (["{drive}", "--rate", "0"], "rate is 0"),
        (["{drive}", "--topics", "/x"], "no topic /x"),
        (["{drive}", "--qos-overrides", "/nowhere.yaml"], "cannot be read"),
    ],
)
def test_what_cannot_be_played_is_refused_in_one_sentence(ros_process, drive, arguments, reason):
    player = ros_process(PLAYER, *(argument.format(drive=drive) for argument in arguments))
    assert player.wait() == 1
    assert reason in player.log
    assert "Traceback" not in player.log
