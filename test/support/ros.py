"""Fixtures for tests on a real ROS 2 graph. Nothing here imitates ROS: nodes are real and talk over DDS.

ros_domain
    int: the test's own domain id on localhost, already in os.environ (ROS_DOMAIN_ID, discovery range, log
    folder). The other fixtures use it by themselves.

ros_process
    start(target, *arguments, params={}, remap={}, name=None, env={}) -> RosProcess
    Starts a node as a process. `target` is a module ("lla_fusion_ros.ros perception"), the path of a
    script, or Python source (anything with a line break). `params` and `remap` become ROS arguments.
    RosProcess: .log, .wait_for_log(text), .check(), .stop(sig=SIGINT) -> exit code, .wait() -> exit code.
    At the end of the test all are stopped by SIGINT; one that died by itself fails the test with its log.

ros_graph
    RosGraph: nodes inside the test's process, on one executor that runs only while the test waits.
      node(name, **options) -> Node                  a plain node, for publishing and asking
      add(node) -> node                              put a node under test on the executor
      collect(node, type, topic, qos=10) -> list     fills with the received messages while the test waits
      spin_until(condition, timeout=120, what="…")
      publish_until(publisher, message, condition)   publish again and again until it has had its effect
      wait_for_node(name), wait_for_subscribers(publisher, n=1), wait_for_publishers(node, topic, n=1)
      call(node, type, service_name, request) -> response
      set_parameter(node_name, name, value) -> SetParametersResult of a running node
    Every wait also fails as soon as a process started by `ros_process` has died.

LATCHED
    QoS of a latched topic (reliable, transient local, depth 1).

Mind the two halves of discovery: `wait_for_subscribers` says that this process knows the other side, not that
the other side's answer would already find its way back. Where an answer is expected on a volatile
topic, use `publish_until`, or a service.

perception_node
    make(*arguments, **parameters) -> PerceptionNode, on the graph, stopped at the end of the test. It pairs
    images and detections however far apart a busy machine takes them, unless the parameters say otherwise.

detector
    The node of cameras and detectors, a DDS participant of its own: in one participant a topic has one type.

Use the fixtures by name in any test below `test/`; import `wait_for` from `support.waiting`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import rclpy
from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from .domains import reserved_domain
from .processes import ProcessDied, RosProcess, child_environment, python_command
from .waiting import DEFAULT_TIMEOUT, wait_for

PATIENT = {"sync_wait": 60.0, "sync_lead": 60.0}
LATCHED = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)


class RosGraph:
    """Nodes in the test's own process; see the top of the file."""

    def __init__(self, processes: list[RosProcess]) -> None:
        self._processes = processes
        self._nodes: list[Node] = []
        self.executor = SingleThreadedExecutor()

    def node(self, name: str = "test_node", **options: Any) -> Node:
        return self.add(Node(name, **options))

    def add(self, node: Any) -> Any:
        self._nodes.append(node)
        self.executor.add_node(node)
        return node

    def collect(self, node: Node, message_type: type, topic: str, qos: QoSProfile | int = 10) -> list[Any]:
        received: list[Any] = []
        node.create_subscription(message_type, topic, received.append, qos)
        return received

    def spin_until(
        self, condition: Callable[[], object], timeout: float = DEFAULT_TIMEOUT, what: str = "the condition"
    ) -> None:
        try:
            wait_for(condition, timeout, what, step=self._spin_once)
        except ProcessDied:
            raise
        except AssertionError as error:
            raise AssertionError(f"{error}{self._logs()}") from None

    def publish_until(
        self,
        publisher: Any,
        message: Any,
        condition: Callable[[], object],
        timeout: float = DEFAULT_TIMEOUT,
        what: str = "an effect of the published message",
    ) -> None:
        next_time = time.monotonic()

        def done_or_publish() -> object:
            nonlocal next_time
            done = condition()
            if not done and time.monotonic() >= next_time:
                publisher.publish(message)
                next_time = time.monotonic() + 0.5
            return done

        self.spin_until(done_or_publish, timeout, what)

    def wait_for_node(self, name: str, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Wait until a node of this name (without namespace) is in the graph."""
        self.spin_until(lambda: name in self._nodes[0].get_node_names(), timeout, f"node {name!r}")

    def wait_for_subscribers(self, publisher: Any, n: int = 1, timeout: float = DEFAULT_TIMEOUT) -> None:
        what = f"{n} subscriber(s) of {publisher.topic_name}"
        self.spin_until(lambda: publisher.get_subscription_count() >= n, timeout, what)

    def wait_for_publishers(
        self, node: Node, topic: str, n: int = 1, timeout: float = DEFAULT_TIMEOUT
    ) -> None:
        self.spin_until(lambda: node.count_publishers(topic) >= n, timeout, f"{n} publisher(s) of {topic}")

    def call(
        self,
        node: Node,
        service_type: type,
        name: str,
        request: Any,
        timeout: float = DEFAULT_TIMEOUT,
        repeat: float = float("inf"),
    ) -> Any:
        """Ask a service; where it does no harm, again after `repeat` seconds without an answer.

        On a busy machine a server may get the question before it has found the asker's reader of answers.
        rmw_fastrtps then gives up on the answer, and the server says so in its log.
        """
        client = node.create_client(service_type, name)
        self.spin_until(client.service_is_ready, timeout, f"service {name}")
        asked: list[tuple[float, Any]] = []

        def answers() -> list[Any]:
            if not asked or time.monotonic() - asked[-1][0] > repeat:
                asked.append((time.monotonic(), client.call_async(request)))
            return [future.result() for _, future in asked if future.done()]

        self.spin_until(answers, timeout, f"the answer of service {name}")
        node.destroy_client(client)
        return answers()[0]

    def set_parameter(self, node_name: str, name: str, value: Any) -> SetParametersResult:
        request = SetParameters.Request(parameters=[Parameter(name, value=value).to_parameter_msg()])
        asker = self._nodes[0] if self._nodes else self.node()
        service = f"/{node_name.lstrip('/')}/set_parameters"
        return self.call(asker, SetParameters, service, request, repeat=10.0).results[0]

    def close(self) -> None:
        self.executor.shutdown()
        for node in self._nodes:
            node.destroy_node()

    def _spin_once(self) -> None:
        self.executor.spin_once(timeout_sec=0.05)
        for process in self._processes:
            process.check()

    def _logs(self) -> str:
        return "".join(f"\n--- log of {process.name}:\n{process.log}" for process in self._processes)


@pytest.fixture
def ros_domain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    with reserved_domain() as domain:
        monkeypatch.setenv("ROS_DOMAIN_ID", str(domain))
        monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        monkeypatch.setenv("ROS_LOG_DIR", str(tmp_path / "ros_log"))
        yield domain


@pytest.fixture
def _ros_processes() -> list[RosProcess]:
    return []


@pytest.fixture
def ros_process(
    ros_domain: int, _ros_processes: list[RosProcess], tmp_path: Path
) -> Iterator[Callable[..., RosProcess]]:
    def start(
        target: str | Path,
        *arguments: str,
        params: Mapping[str, Any] | None = None,
        remap: Mapping[str, str] | None = None,
        name: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> RosProcess:
        words = ros_arguments(params or {}, remap or {})
        command = python_command(target, [*arguments, *words])
        label = name or f"process {len(_ros_processes) + 1}"
        log_path = tmp_path / f"{len(_ros_processes) + 1}_{label.replace('/', '_').replace(' ', '_')}.log"
        process = RosProcess(command, label, log_path, child_environment(env))
        _ros_processes.append(process)
        return process

    yield start
    died = []
    for process in reversed(_ros_processes):
        try:
            process.check()
            process.stop()
        except AssertionError as error:
            died.append(str(error))
    if died:
        pytest.fail("\n".join(died), pytrace=False)


@pytest.fixture
def ros_graph(ros_domain: int, _ros_processes: list[RosProcess]) -> Iterator[RosGraph]:
    rclpy.init(domain_id=ros_domain)
    graph = RosGraph(_ros_processes)
    yield graph
    graph.close()
    rclpy.try_shutdown()


@pytest.fixture
def perception_node(ros_graph: RosGraph) -> Iterator[Callable[..., Any]]:
    from lla_fusion_ros.ros.perception import PerceptionNode

    nodes = []

    def make(*arguments: str, **parameters: Any) -> PerceptionNode:
        overrides = [Parameter(name, value=value) for name, value in {**PATIENT, **parameters}.items()]
        node = PerceptionNode(parameter_overrides=overrides, cli_args=list(arguments) or None)
        nodes.append(ros_graph.add(node))
        return node

    yield make
    for node in nodes:
        node.stop()


@pytest.fixture
def detector(ros_graph: RosGraph, ros_domain: int) -> Iterator[Node]:
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=ros_domain)
    node = Node("detector", context=context)
    yield node
    node.destroy_node()
    context.shutdown()


def ros_arguments(params: Mapping[str, Any], remap: Mapping[str, str]) -> list[str]:
    """Parameters and remaps as words of a command line."""
    words: list[str] = []
    for key, value in params.items():
        words += ["-p", f"{key}:={_as_yaml(value)}"]
    for old, new in remap.items():
        words += ["-r", f"{old}:={new}"]
    return ["--ros-args", *words] if words else []


def _as_yaml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_as_yaml(item) for item in value) + "]"
    return str(value)
