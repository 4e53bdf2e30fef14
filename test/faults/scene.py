"""Nodes under test with a vehicle around them: its cameras send, its ears check every answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from std_srvs.srv import Trigger
from vision_msgs.msg import Detection2DArray

from faults.core import Shot
from faults.drive import CAMERAS, COMPRESSED, Road, with_boxes
from faults.judge import Judge
from faults.outcome import Checks
from faults.stage import MODULES, PATIENCE, Diagnosed, Stage, memory_mb
from support.camera import CameraOnGraph, stamp_of
from support.processes import RosProcess
from support.waiting import wait_for

REPORTS = 5  # of /diagnostics
NODES = {"perception": ("perception",), "distributed": ("crop_classifier", "class_fusion")}
PARAMS = {
    "model": "signworld",
    "cameras": list(CAMERAS),
    "identity": "global",
    "device": "cpu",
    "input_depth": 20,
    "queue_depth": 20,  # a frame that cannot be used is not waited for; it must not push others out
    "output_depth": 500,
    "listed_mass": 1.0,
    # Halves are paired however far apart a busy machine takes them: no count may hang on its load.
    "sync_wait": 60.0,
    "sync_lead": 60.0,
}
NOT_OF_CLASS_FUSION = ("device", "sync_lead")


class Scene(Judge):
    """The nodes of one form of the system, the vehicle's cameras, and a judge of what comes back."""

    def __init__(
        self,
        stage: Stage,
        nodes: Sequence[str],
        share: float = 1.0,
        road: Road | None = None,
        **surroundings: Any,
    ) -> None:
        """`share` of the usual number of frames is sent; `surroundings` are those of `Stage.start`."""
        super().__init__()
        self._share = share
        self.stage, self.graph = stage, stage.graph
        self.nodes = tuple(nodes)
        self.processes: dict[str, RosProcess] = {
            name: self.start(name, **surroundings) for name in self.nodes
        }
        self.vehicle = self.graph.node("vehicle")
        self.cameras = {name: self.camera(name) for name in CAMERAS}
        self.fused: list[Any] = self.graph.collect(
            self.vehicle, Detection2DArray, "/fused_classes", QoSProfile(depth=2000)
        )
        self.diagnosed = Diagnosed(self.graph, self.vehicle)
        self.road = road or Road()
        self._before: dict[tuple[str, str], Counter[str]] = {}
        self._settled = False
        self._setters: dict[str, Any] = {}
        self.meet()

    def times(self, count: int) -> int:
        """How often to do what a full campaign does so many times."""
        return max(round(count * self._share), 1)

    def camera(self, name: str) -> Any:
        """What sends a camera's images and boxes."""
        return CameraOnGraph(self.vehicle, name, "jpeg" if COMPRESSED[name] else "", QoSProfile(depth=500))

    def start(self, name: str, **options: Any) -> RosProcess:
        params = {**PARAMS, **options.pop("params", {})}
        if name == "class_fusion":
            params = {key: value for key, value in params.items() if key not in NOT_OF_CLASS_FUSION}
        module = next(module for kind, module in MODULES.items() if name.startswith(kind))
        return self.stage.start(module, name, params=params, remap={"__node": name}, **options)

    def restart(self, name: str, **options: Any) -> None:
        """The node again, after its process has ended."""
        self.stage.forget(self.processes[name])
        self.processes[name] = self.start(name, **options)
        for setter in self._setters.values():
            self.vehicle.destroy_client(setter)
        self._setters.clear()

    def meet(self) -> None:
        """Send frames until one is fused: all have found each other. Then everything is reset."""
        for camera in self.cameras.values():
            self.graph.wait_for_subscribers(camera.images, timeout=PATIENCE)
            self.graph.wait_for_subscribers(camera.detections, timeout=PATIENCE)
        self.graph.wait_for_publishers(self.vehicle, "/fused_classes", timeout=PATIENCE)
        heard: set[str] = set()
        for _ in range(200):
            self.send(self._stranger())
            for _ in range(10):
                self.graph._spin_once()
            heard |= {message.header.frame_id for message in self.fused}
            if heard == set(CAMERAS):
                break
        self.recover()
        self.diagnosed.fresh(self.nodes)  # a second in which whatever is still under way arrives
        self.drain()
        self.reset()

    def reset(self) -> None:
        """Let the nodes forget all tracks, and the judge with them; what was sent and said is settled."""
        for name in self.nodes:
            self.graph.call(self.vehicle, Trigger, f"/{name}/reset", Trigger.Request(), PATIENCE, repeat=10.0)
        self.diagnosed.fresh(self.nodes)  # what waited for its other half is forgotten too
        self.forget_answers()
        self.note_counters()

    def note_counters(self) -> None:
        self._before = {
            (node, camera): self.diagnosed.counters(node, camera) for node in self.nodes for camera in CAMERAS
        }

    def growth(self, node: str, camera: str) -> Counter[str]:
        """How much each counter has grown since the fault began; call `diagnosed.fresh` first."""
        return self.diagnosed.counters(node, camera) - self._before[node, camera]

    def all_growth(self) -> dict[str, dict[str, int]]:
        """How much the counters have grown, by node and camera."""
        return {f"{node}: {camera}": dict(self.growth(node, camera)) for node, camera in self._before}

    def check_counts(self, checks: Checks, node: str, camera: str, expected: Mapping[str, int]) -> None:
        """Counters grew by just so much; a frame still under way gets a few more reports to arrive."""
        for _ in range(REPORTS):
            found = self.growth(node, camera)
            if all(found[key] == count for key, count in expected.items()):
                break
            self.diagnosed.fresh(self.nodes)
        checks.counts(found, expected, camera)

    def memory_mb(self) -> dict[int, float]:
        """By process id, so that a process that was started again is not compared with its predecessor."""
        return {process.popen.pid: memory_mb(process) for process in self.processes.values()}

    # Sending.
    def send(self, shot: Shot) -> None:
        self.send_image(shot)
        self.send_boxes(shot)

    def send_image(self, shot: Shot) -> None:
        self._settled = False
        self._sent[shot.camera, shot.stamp] = shot
        self.cameras[shot.camera].images.publish(shot.image)

    def send_boxes(self, shot: Shot) -> None:
        self._settled = False
        self._sent[shot.camera, shot.stamp] = shot
        self.cameras[shot.camera].detections.publish(shot.detections)

    def step(self, shot: Shot) -> bool:
        """Send a frame, wait for what the core says must come, compare; whether anything was to come."""
        expected = self._core.take(shot)
        self.send(shot)
        if expected is None:
            return False
        self._compare(shot, expected)
        return True

    def drive(self, count: int) -> None:
        """So many good frames, one at a time."""
        for shot in self.road.take(count):
            self.step(shot)

    def flow(self, shots: Iterable[Shot]) -> None:
        """Send frames without waiting for answers; `judge` later."""
        for shot in shots:
            self.send(shot)
            self.spin()

    def spin(self) -> None:
        self.graph.executor.spin_once(timeout_sec=0)

    def recover(self) -> list[tuple[str, int]]:
        """One good frame of each camera; each must be answered. Then all answers are judged."""
        for camera in CAMERAS:
            shot = self.road.next_of(camera)
            self.send(shot)
            key = (camera, shot.stamp)
            self.graph.spin_until(
                lambda key=key: any(
                    (message.header.frame_id, stamp_of(message)) == key
                    for message in self.fused[self._judged :]
                ),
                PATIENCE,
                f"the first good frame of {camera} after the fault",
            )
        return self.judge()

    def send_part(self, shot: Shot, part: str, completes: bool) -> None:
        """Half a frame; once it is whole its answer is awaited."""
        expected = self._core.take(shot) if completes else None
        (self.send_image if part == "image" else self.send_boxes)(shot)
        if expected is not None:
            self._compare(shot, expected)

    def come_back(self, name: str, keeps_tracks: bool = False) -> None:
        """Start a node again that has died, send frames until both cameras are answered again, drive on."""
        self.drain()
        self.judge()
        self.restart(name)
        self.answered_again(keeps_tracks)

    def answered_again(self, keeps_tracks: bool) -> None:
        """Send frames until both cameras are answered again, and drive on.

        DDS may let a node hear before it is heard: what it fuses meanwhile must not count for what we see.
        """
        if not keeps_tracks:
            self._core = self.new_core()
        before = {camera: self.answers_of(camera) for camera in CAMERAS}
        self.play_until(
            None,
            lambda: all(self.answers_of(camera) > before[camera] for camera in CAMERAS),
            "answers of a node that is back",
            self._stranger,
        )
        self.recover()
        self.drive(10)

    def drain(self) -> None:
        """Take what has arrived and not been looked at."""
        count = -1
        while count != len(self.fused):
            count = len(self.fused)
            for _ in range(4):
                self.graph._spin_once()

    def answers_of(self, camera: str) -> int:
        return sum(message.header.frame_id == camera for message in self.fused)

    def play_until(
        self,
        camera: str | None,
        condition: Callable[[], bool],
        what: str,
        next_shot: Callable[[], Shot] | None = None,
    ) -> None:
        """The drive (or one camera of it) at a pace that a busy machine can follow."""

        def next_of_the_drive() -> Shot:
            return self.road.next() if camera is None else self.road.next_of(camera)

        def send_next() -> None:
            self.send((next_shot or next_of_the_drive)())
            for _ in range(4):
                self.graph._spin_once()

        wait_for(condition, PATIENCE, what, step=send_next)

    def _stranger(self) -> Shot:
        """The next frame of the drive, of objects that nobody has met and nobody meets again."""
        shot, frame = self.road.next(), self.road.scene
        return with_boxes(shot, [f"{each} at {shot.stamp}" for each in frame.ids], frame.boxes)

    def settle(self) -> None:
        """A good frame of each camera goes through, so that all before them is done, and is reported."""
        if not self._settled:
            self.recover()
            self.diagnosed.fresh(self.nodes)
            self._settled = True

    def set_parameter(self, node: str, name: str, value: Any) -> SetParametersResult:
        """As `ros2 param set`; the client is kept, since some faults set hundreds."""
        if node not in self._setters:
            self._setters[node] = self.vehicle.create_client(SetParameters, f"/{node}/set_parameters")
            self.graph.spin_until(self._setters[node].service_is_ready, PATIENCE, f"parameters of {node}")
        request = SetParameters.Request(parameters=[Parameter(name, value=value).to_parameter_msg()])
        answer = self._setters[node].call_async(request)
        self.graph.spin_until(answer.done, PATIENCE, f"the answer of {node} about {name}")
        return answer.result().results[0]
