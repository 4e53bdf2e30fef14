"""How processes end: in order, gone from the graph, on any number of signals, and by force where something
hangs."""

from __future__ import annotations

import signal
import time

import pytest
from std_msgs.msg import Empty

from support.processes import REPOSITORY

GONE = 5.0  # seconds; who leaves without a word stays in the graph for 20

HANGING = """
import ctypes, threading
from lla_fusion_ros.ros.process_life import Ending, begin

begin()
ending = Ending()
print("ready")
{rest}
"""
CASES = {
    # as Fast DDS may hang in rclpy: in C, with Python's lock held
    "with the lock": (
        'ending.finish(0, ("a participant", lambda: ctypes.PyDLL(None).sleep(60)))',
        "in finish",
    ),
    "without the lock": (
        'ending.finish(0, ("a participant", lambda: ctypes.CDLL(None).sleep(60)))',
        "not freed within 3 s: a participant",
    ),
    "at work": (
        "lock = threading.Lock(); lock.acquire(); lock.acquire()",
        "not freed within 3 s: the work under way",
    ),
}


def test_whatever_hangs_the_process_ends_and_says_what_was_not_freed(ros_process):
    processes = {name: ros_process(HANGING.format(rest=rest), name=name) for name, (rest, _) in CASES.items()}
    for process in processes.values():
        process.expect_end()
        process.wait_for_log("ready")
    begun = time.monotonic()
    processes["at work"].popen.send_signal(signal.SIGTERM)
    for name, process in processes.items():
        assert process.wait(20) == 1
        assert CASES[name][1] in process.log, process.log
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("gap", [0.0, 0.05])
def test_two_signals_close_together_end_a_node_as_one_does(ros_process, gap):
    process = ros_process("lla_fusion_ros.ros class_fusion", params={"model": "signworld"}, name="fusion")
    process.wait_for_log("model ")
    process.expect_end()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
        process.popen.send_signal(number)
        time.sleep(gap)
    assert process.wait(20) == 0
    assert "Traceback" not in process.log, process.log


@pytest.mark.parametrize(
    ("executable", "words", "says"),
    [
        ("class_fusion", ["--ros-args", "--log-level", "loud"], "loud"),
        ("class_fusion", ["--ros-args", "--params-file", "/nowhere.yaml"], "/nowhere.yaml"),
        ("bag_player", ["bag", "--ros-args", "--log-level", "loud"], "loud"),
    ],
)
def test_arguments_that_ros_does_not_take_are_refused_with_a_sentence(ros_process, executable, words, says):
    process = ros_process(f"lla_fusion_ros.ros {executable}", *words)
    assert process.wait() == 1
    sentence = process.log.strip().splitlines()[-1]
    assert "ROS refuses its arguments" in sentence and says in sentence
    assert "Traceback" not in process.log


@pytest.mark.parametrize("executable", ["perception", "bag_player"])
def test_too_few_open_files_are_refused_with_a_sentence(ros_process, executable):
    source = (
        "import resource, os, sys\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))\n"
        "os.execv(sys.executable, [sys.executable, '-m', 'lla_fusion_ros.ros', "
        f"'{executable}'])"
    )
    process = ros_process(source, name="poor", env={"PYTHONPATH": str(REPOSITORY)})
    assert process.wait() == 1
    (sentence,) = process.log.strip().splitlines()
    assert "16 files" in sentence and "ulimit -n" in sentence


def left(observer, name: str) -> bool:
    """Whether neither a node nor anything below its name is in the graph."""
    known = observer.get_service_names_and_types() + observer.get_topic_names_and_types()
    return name not in observer.get_node_names() and not any(own.startswith(f"/{name}/") for own, _ in known)


@pytest.mark.parametrize("name", ["perception", "crop_classifier", "class_fusion"])
def test_a_node_leaves_the_graph_as_it_ends_and_the_next_of_its_name_is_alone(
    ros_graph, ros_process, model, name
):
    observer = ros_graph.node("observer")
    for number in (signal.SIGINT, signal.SIGTERM):
        process = ros_process(f"lla_fusion_ros.ros {name}", params={"model": model}, name=name)
        ros_graph.wait_for_node(name)
        assert observer.get_node_names().count(name) == 1
        assert process.stop(number) == 0, process.log
        ros_graph.spin_until(lambda: left(observer, name), GONE, f"{name} to leave the graph")


REFUSING = """
import time
from lla_fusion_ros.ros.class_fusion import ClassFusionNode
from lla_fusion_ros.ros.process_life import run
from lla_fusion_ros.types.errors import InputError

class Refusing(ClassFusionNode):
    def __init__(self):
        super().__init__()
        while not self.count_subscribers("/known"):
            time.sleep(0.02)
        raise InputError("not like this")

run(Refusing)
"""


def test_a_node_that_refuses_to_start_does_not_stay_in_the_graph(ros_graph, ros_process):
    observer = ros_graph.node("observer")
    process = ros_process(REFUSING, name="refusing")
    ros_graph.wait_for_node("class_fusion")
    ros_graph.collect(observer, Empty, "/known")
    assert process.wait() == 1 and "cannot start: not like this" in process.log, process.log
    ros_graph.spin_until(lambda: left(observer, "class_fusion"), GONE, "the node to leave the graph")
