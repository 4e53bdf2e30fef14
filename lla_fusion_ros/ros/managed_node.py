"""What the three nodes share: lifecycle, parameters, worker thread, diagnostics, reset."""

from __future__ import annotations

import time
import traceback
from abc import abstractmethod
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from std_srvs.srv import Trigger

from lla_fusion_ros.errors import LlaFusionError
from lla_fusion_ros.ros.inputs import Inputs
from lla_fusion_ros.ros.outputs import Outputs
from lla_fusion_ros.ros.parameters import Parameters
from lla_fusion_ros.ros.settings import NodeSettings
from lla_fusion_ros.ros.worker import Worker
from lla_fusion_ros.stream.guard import Guard
from lla_fusion_ros.stream.health import Health
from lla_fusion_ros.stream.tally import Tally
from lla_fusion_ros.wire import contract
from lla_fusion_ros.wire.cdr import Header
from lla_fusion_ros.wire.status import write_diagnostics

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
LOOK_EVERY = 0.25  # seconds between looks at silent cameras and QoS
REPORT_EVERY = 1.0


class ManagedNode(LifecycleNode):
    """A lifecycle node around a core that runs in a worker thread.

    Configure loads the model, activate subscribes and works, deactivate stops, cleanup frees the device.
    """

    def __init__(self, kind: str, **options: Any) -> None:
        """`options` are those of a Node, such as parameter_overrides."""
        super().__init__(kind, **options)
        self._core_lock = Lock()  # the worker holds it for a batch; changes of the core need it
        self._configured = False
        self._problem = ""
        self._worker: Worker | None = None
        self._inputs: Inputs | None = None
        self._health: Health | None = None
        self._silent: frozenset[str] = frozenset()
        self._next_report = 0.0
        self._told: set[str] = set()
        self.tally = Tally()
        self.guard = Guard(self.tally, self.on_frame_error)
        self.about: dict[str, str] = {}  # the model and its device, for /diagnostics
        self.parameters = Parameters(self, kind, self._apply, lambda: self._configured)
        self.outputs = Outputs(self, self.parameters.of(NodeSettings).output_depth)
        self._diagnostics = self.create_publisher(DiagnosticArray, contract.NODE_DIAGNOSTICS, 10)
        self.create_service(Trigger, "~/reset", self._on_reset)
        # wall time: with use_sim_time and a stopped clock, silence must still be reported
        self.create_timer(LOOK_EVERY, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))

    # What a node fills in.
    @abstractmethod
    def build(self) -> None:
        """Load the model and make the core and the outputs; LlaFusionError refuses."""

    @abstractmethod
    def free(self) -> None:
        """Let go of the core."""

    @abstractmethod
    def subscribe(self, inputs: Inputs) -> None:
        """Subscribe to the inputs of all cameras."""

    @abstractmethod
    def work(self) -> bool:
        """Do one batch of what waits and publish it; False where nothing waits."""

    @abstractmethod
    def prepare(self, settings: Sequence[Any]) -> Callable[[], None]:
        """Try changed settings out while the worker goes on; LlaFusionError refuses them.

        What it returns takes them over, between two batches, and must neither fail nor take long.
        """

    @abstractmethod
    def reset(self) -> None:
        """Forget all tracks and all that waits."""

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """What `/diagnostics` should say about the core."""

    @abstractmethod
    def waiting(self, camera: str) -> dict[str, int]:
        """How much of a camera waits for what."""

    def troubles(self) -> dict[str, str]:
        """What is wrong, by camera."""
        return {}

    # Lifecycle.
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            self.build()
        except Exception as error:  # rclpy would swallow it without a word
            if not self.context.ok():  # a signal has ended ROS in the middle of it
                self._tear_down()
                return FAILURE
            if not isinstance(error, LlaFusionError):
                self.get_logger().error(traceback.format_exc())
            self._problem = str(error) or repr(error)
            self.get_logger().fatal(self._problem)
            self._tear_down()
            return FAILURE
        self._configured = True
        cameras = self.parameters.cameras
        silent_after = self.parameters.of(NodeSettings).silent_after
        name = self.get_fully_qualified_name().lstrip("/")
        self._health = Health(name, cameras, self.tally, silent_after)
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        result = super().on_activate(state)
        settings = self.parameters.of(NodeSettings)
        self._inputs = Inputs(self, settings.input_reliability, settings.input_depth)
        self._worker = Worker(self._work_under_lock, self._on_worker_error)
        self._worker.start()
        self.subscribe(self._inputs)
        return result

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._stop()
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._tear_down()
        return SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._tear_down()
        return SUCCESS

    def start(self) -> None:
        """Configure and activate; LlaFusionError where the node refuses."""
        if self.trigger_configure() != SUCCESS:
            raise LlaFusionError(self._problem or "the node could not be configured")
        if self.trigger_activate() != SUCCESS:
            raise LlaFusionError(self._problem or "the node could not be activated")

    def stop(self) -> None:
        """End the worker before the interpreter goes."""
        self._stop()

    # For the nodes' callbacks.
    def wake(self) -> None:
        """Frames wait."""
        if self._worker is not None:
            self._worker.wake()

    def hear(self, camera: str) -> None:
        """A message of this camera came."""
        if self._health is not None:
            self._health.hear(camera, time.monotonic())

    def finish(self, stamp: int, work: float) -> None:
        """A frame of this stamp is out, after so many seconds of work."""
        if self._health is not None:
            self._health.finish((self.get_clock().now().nanoseconds - stamp) / 1e9, work)

    def tell_once(self, key: str, message: str) -> None:
        """Warn, but of the same thing only once."""
        if key not in self._told:
            self._told.add(key)
            self.get_logger().warning(message)

    def look(self, inputs: Inputs, silent: frozenset[str]) -> None:
        """Called a few times a second while active."""
        inputs.adapt()

    def _stop(self) -> None:
        if self._inputs is not None:
            self._inputs.close()
            self._inputs = None
        if self._worker is not None:
            self._worker.stop()
            self._worker = None

    def _tear_down(self) -> None:
        self._stop()
        self.outputs.close()
        self.free()
        self._configured = False
        self._health = None

    def _work_under_lock(self) -> bool:
        with self._core_lock:
            return self.work()

    def _on_worker_error(self, error: Exception) -> None:
        if not self.context.ok():  # a signal has ended ROS under the worker's feet; `stop` is on its way
            return
        self.tally.drop("", {"internal_error": 1})
        self.on_frame_error(error)

    def on_frame_error(self, error: Exception) -> None:
        """A frame was left out because of an error of ours; counted already."""
        trace = "".join(traceback.format_exception(error))
        self.tell_once(type(error).__name__, f"frames were lost to an internal error:\n{trace}")

    def _apply(self, settings: Sequence[Any]) -> None:
        if self._configured:
            take_over = self.prepare(settings)
            with self._core_lock:
                take_over()

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._configured:
            with self._core_lock:
                self.reset()
        response.success, response.message = True, "all tracks forgotten"
        return response

    def _look(self) -> None:
        if self._health is None:
            return
        now = time.monotonic()
        silent = self._health.silent(now)
        if self._inputs is not None:
            self.look(self._inputs, silent)
        if now >= self._next_report or silent != self._silent:
            self._silent = silent
            self._next_report = now + REPORT_EVERY - LOOK_EVERY / 2
            self._report(now)

    def _report(self, now: float) -> None:
        assert self._health is not None
        values = {"state": self._state_machine.current_state[1], **self.describe()}
        waiting = {camera: self.waiting(camera) for camera in self.parameters.cameras}
        statuses = self._health.report(now, values, self.troubles(), waiting)
        stamp = self.get_clock().now().nanoseconds
        self._diagnostics.publish(write_diagnostics(Header(stamp, ""), statuses))
