"""What the three nodes share around a Perception: lifecycle, parameters, worker, reset."""

from __future__ import annotations

import time
import traceback
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from std_srvs.srv import Trigger

from lla_fusion_ros.bundle import Bundle, load_bundle
from lla_fusion_ros.bundle.resources import SCORES, shipped_models
from lla_fusion_ros.messages import contract
from lla_fusion_ros.ros.compat import LACKING
from lla_fusion_ros.ros.node_settings import NodeSettings
from lla_fusion_ros.ros.parameters import Parameters
from lla_fusion_ros.ros.publishers import TYPES, FusedOutput, Outputs
from lla_fusion_ros.ros.reporting import LOOK_EVERY, Reporting
from lla_fusion_ros.ros.subscriptions import Inputs
from lla_fusion_ros.ros.worker import Worker
from lla_fusion_ros.stream.frames import FusedFrame, ViewFrame
from lla_fusion_ros.stream.perception import Guard, Perception
from lla_fusion_ros.types.errors import InputError, LlaFusionError
from lla_fusion_ros.types.printable import printable
from lla_fusion_ros.types.tally import Tally

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
# Without these a camera counts as silent.
SIGNS_OF_LIFE = ("image", "image/compressed", "crops", "crops/compressed", "views")
LOST = {  # what the tally calls messages that DDS lost, by topic
    "image": "images_lost",
    "image/compressed": "images_lost",
    "detections": "detections_lost",
    "crops": "crops_lost",
    "crops/compressed": "crops_lost",
    "views": "views_lost",
    "views/embeddings": "embeddings_lost",
    "camera_info": "camera_infos_lost",
}


class ManagedNode(LifecycleNode):
    """A lifecycle node around a core that runs in a worker thread.

    Configure loads the model, activate subscribes and works, deactivate stops, cleanup frees the device.
    """

    def __init__(self, kind: str, **options: Any) -> None:
        """`options` are those of a Node, such as parameter_overrides."""
        super().__init__(kind, **options)
        self._core_lock = Lock()  # the worker holds it for a batch; changes of the core need it
        self.perception: Perception | None = None  # while a model is loaded
        self.fused_output: FusedOutput | None = None
        self._problem = ""
        self._worker: Worker | None = None
        self.inputs: Inputs | None = None
        if LACKING:
            self.get_logger().info(LACKING)
        self.tally = Tally()
        self.reporting = Reporting(self)
        self.guard = Guard(self.tally, self.on_frame_error)
        self.parameters = Parameters(self, kind, self._apply, lambda: self.perception is not None)
        self.outputs = Outputs(self, self.parameters.of(NodeSettings).output_depth)
        self.create_service(Trigger, "~/reset", self._on_reset)
        # wall time: with use_sim_time and a stopped clock, silence must still be reported
        self.create_timer(LOOK_EVERY, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))

    # What a node fills in.
    @abstractmethod
    def build(self) -> Perception:
        """Load the model, advertise the outputs, make the core; LlaFusionError refuses."""

    @abstractmethod
    def subscribe(self, inputs: Inputs) -> None:
        """Listen to the inputs of all cameras."""

    @abstractmethod
    def publish(self, frame: FusedFrame | ViewFrame) -> None:
        """Send what the core made of a frame."""

    def step(self, perception: Perception) -> Iterable[FusedFrame | ViewFrame]:
        """Work on frames that wait; each comes as soon as it is fused, not when the last one is."""
        for frame in perception.views():
            yield from perception.fuse([frame])

    def free(self) -> None:
        """Let go of the core."""
        self.perception, self.fused_output = None, None

    # Lifecycle.
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            self.perception = self.build()
        except Exception as error:  # rclpy would swallow it without a word
            if not self.context.ok():  # a signal has ended ROS in the middle of it
                self._tear_down()
                return FAILURE
            if not isinstance(error, LlaFusionError):
                self.get_logger().error(traceback.format_exc())
            self._problem = str(error) or repr(error)
            self.get_logger().fatal(printable(self._problem))
            self._tear_down()
            return FAILURE
        self.reporting.begin()
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        result = super().on_activate(state)
        settings = self.parameters.of(NodeSettings)
        self.inputs = Inputs(self, settings.input_reliability, settings.input_depth)
        self._worker = Worker(self._work, self._on_worker_error)
        self._worker.start()
        self.subscribe(self.inputs)
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

    def destroy_node(self) -> None:
        """Free everything; rclpy leaves out the state machine, which keeps the node in the graph."""
        super().destroy_node()
        self._state_machine.destroy_when_not_in_use()

    @property
    def state_name(self) -> str:
        """Of the lifecycle."""
        return str(self._state_machine.current_state[1])

    # For the nodes.
    def load_bundle(self) -> Bundle:
        """The model that the parameters name."""
        name = self.parameters.of(NodeSettings).model
        if not name:
            raise InputError(
                "parameter 'model' is not set: give the path of a model file, or the name of one that ships: "
                f"{', '.join(shipped_models())}; or {SCORES}, and what the detector says is fused"
            )
        bundle = load_bundle(name)
        self.reporting.about = {"model": name, "model hash": bundle.hash}
        if bundle.for_scores:
            self.get_logger().info(f"model {bundle.source}: no networks, the detector's scores are fused")
            return bundle
        parts = f"{bundle.networks} networks, {bundle.classes} classes, sha256 {bundle.hash[:12]}"
        self.get_logger().info(f"model {bundle.source}: {parts}")
        for sentence in bundle.older:
            self.get_logger().info(
                f"model {bundle.source}, older than this package, was not fitted to {sentence}"
            )
        return bundle

    def listen(
        self, inputs: Inputs, camera: str, topic: str, name: str = "", kind: type | None = None
    ) -> None:
        """Receive one of a camera's inputs; `name` and `kind` where it is not the topic of the contract."""
        lost = partial(self.count_lost, camera, LOST[topic])
        key = f"{camera}/{topic}"
        on_bytes = partial(self.receive, camera, topic)
        inputs.subscribe(kind or TYPES[contract.INPUTS[topic]], name or key, on_bytes, lost, key)

    def listen_to_geometry(self, inputs: Inputs, topics: Mapping[str, str]) -> None:
        """Receive where cameras are; `topics` are those of their camera_info."""
        for camera, topic in topics.items():
            self.listen(inputs, camera, "camera_info", topic)
        try:
            from tf2_msgs.msg import TFMessage
        except ImportError:
            self.get_logger().warning("tf2_msgs is not installed here: objects of cameras are not joined")
            return

        def receive(topic: str, raw: bytes, received: int | None = None) -> None:
            if self.perception is not None:
                self.perception.offer_transforms(topic, raw)

        static = contract.STATIC_TRANSFORMS
        inputs.subscribe_latched(TFMessage, static, partial(receive, static), depth=100)
        inputs.subscribe(
            TFMessage, contract.TRANSFORMS, partial(receive, contract.TRANSFORMS), lambda lost: None
        )

    def receive(self, camera: str, topic: str, raw: bytes, received: int | None = None) -> None:
        """A message came; `received` is when the middleware got it."""
        if topic in SIGNS_OF_LIFE:
            self.reporting.hear(camera)
        if self.perception is None or self._worker is None:
            return
        if self.perception.offer(camera, topic, raw, received=received):
            self._worker.wake()

    def troubles(self) -> dict[str, str]:
        """What is wrong, by camera."""
        if self.perception is None:
            return {}
        foreign = {
            camera: f"its views come from bundle {theirs[:12]}, not from this node's; they are refused"
            for camera, theirs in self.perception.foreign.items()
        }
        return {**self.perception.troubles(), **foreign}

    def wiring(self, camera: str) -> dict[str, str]:
        """How a camera is connected, for /diagnostics."""
        return {}

    def connection(self, camera: str) -> str:
        """How a camera is connected, for the log; empty where that is not decided yet."""
        return "views are fused"

    def look(self, inputs: Inputs, silent: frozenset[str]) -> None:
        """Called a few times a second while active."""
        inputs.adapt()
        if self.perception is not None:
            self.perception.queue.expire()
            if self.perception.queue.ready and self._worker is not None:
                self._worker.wake()
        self.reporting.crowd(inputs.crowded() | self.outputs.crowded(time.monotonic()))

    def _stop(self) -> None:
        if self.inputs is not None:
            self.inputs.close()
            self.inputs = None
        if self._worker is not None:
            self._worker.stop()
            self._worker = None

    def _tear_down(self) -> None:
        self._stop()
        self.outputs.close()
        self.free()
        self.reporting.end()

    def _work(self) -> bool:
        """One batch of what waits; False where nothing does."""
        with self._core_lock:
            perception = self.perception
            if perception is None or not perception.queue.ready:
                return False
            begun = time.monotonic()
            for frame in self.step(perception):
                self.guard.publish(self.publish, [frame])
                begun = self.reporting.finish(frame, begun)
            return True

    def _on_worker_error(self, error: Exception) -> None:
        if not self.context.ok():  # a signal has ended ROS under the worker's feet; `stop` is on its way
            return
        self.tally.drop("", {"internal_error": 1})
        self.on_frame_error(error)

    def on_frame_error(self, error: Exception) -> None:
        """A frame was left out because of an error of ours; counted already."""
        if not self.context.ok():  # a signal has ended ROS in the middle of it
            return
        trace = "".join(traceback.format_exception(error))
        self.reporting.warn_once(type(error).__name__, f"frames were lost to an internal error:\n{trace}")

    def _apply(self, settings: Sequence[Any]) -> None:
        if self.perception is not None:
            take_over = self.perception.prepare(settings)  # while the worker goes on
            with self._core_lock:
                self._forget(take_over())

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self.perception is not None:
            with self._core_lock:
                self._forget(self.perception.reset())
        response.success, response.message = True, "all tracks forgotten"
        return response

    def _forget(self, warned: Sequence[str]) -> None:
        if self.fused_output is not None:
            self.fused_output.clear(warned)

    def count_lost(self, camera: str, reason: str, count: int) -> None:
        self.tally.drop(camera, {reason: count})

    def _look(self) -> None:
        silent = self.reporting.look()
        if silent is None:
            return
        if self.inputs is not None:
            self.look(self.inputs, silent)
        self.reporting.report(silent)
