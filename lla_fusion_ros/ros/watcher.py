"""Listens to every fusion on the graph and feeds the scene of `lla-fusion watch`; sends nothing itself."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Lock, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

try:
    from tf2_msgs.msg import TFMessage
except ImportError:  # cameras have no place in space then
    TFMessage = None

from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.detections import parse_detections
from lla_fusion_ros.messages.status import parse_diagnostics, parse_label_info
from lla_fusion_ros.ros.publishers import TYPES
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.watch.scene import Scene, camera_name

if TYPE_CHECKING:
    from lla_fusion_ros.ros.rerun_feed import RerunFeed

LOOK_EVERY = 1.0  # seconds between looks for new topics
LOOKED_AT = 5.0  # seconds after which nobody looks at a camera's picture any more
_DEPTH = 5
_TYPES = TYPES if TFMessage is None else {**TYPES, contract.TRANSFORMS_TYPE: TFMessage}


class Watcher:
    """A node of its own that listens while the `with` block runs, in a thread.

    Topics are found by their names and types as they appear, below any namespace. All is heard as best
    effort: no publisher waits for a watcher. A feed hears more, for a recording. Annotated images, which a
    node draws only for listeners, are heard while somebody calls `look_at`.
    """

    def __init__(self, scene: Scene, feed: RerunFeed | None = None) -> None:
        self._scene = scene
        self._feed = feed
        self._heard: dict[str, Any] = {}
        self._pictures: dict[str, str] = {}  # camera -> its topic
        self._looked: dict[str, float] = {}  # camera -> when
        self._lock = Lock()
        self._context = Context()
        self._context.init(args=[])
        self._node = Node(
            f"lla_fusion_watch_{os.getpid()}",
            context=self._context,
            enable_rosout=False,
            start_parameter_services=False,
        )
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._node.create_timer(LOOK_EVERY, self._look)
        self._thread = Thread(target=self._spin, name="watcher", daemon=True)

    def __enter__(self) -> Watcher:
        self._look()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._executor.shutdown(timeout_sec=2.0)
        self._context.try_shutdown()
        self._thread.join(timeout=2.0)
        if not self._thread.is_alive():  # else its node is still in use, and ends with the process
            self._node.destroy_node()

    def look_at(self, camera: str) -> None:
        """Somebody looks at the annotated images of this camera now, if there is one of that name."""
        with self._lock:
            if camera in self._pictures:
                self._looked[camera] = time.monotonic()

    def _spin(self) -> None:
        with suppress(ExternalShutdownException):
            self._executor.spin()

    def _look(self) -> None:
        """Listen to what is new, and no longer to pictures that nobody looks at."""
        types = {name: kinds for name, kinds in self._node.get_topic_names_and_types() if len(kinds) == 1}
        published = {name: kinds[0] for name, kinds in types.items() if self._node.count_publishers(name)}
        if published.get(contract.NODE_DIAGNOSTICS) == contract.DIAGNOSTICS:
            self._listen(contract.NODE_DIAGNOSTICS, contract.DIAGNOSTICS, self._diagnostics)
        # the root of a fusion has warnings; a camera's own fused_classes have none beside them
        ending = "/" + contract.OOD_WARNINGS
        sources = [name.removesuffix(ending) for name in published if name.endswith(ending)]
        for source in sources:
            self._listen_to(source, published)
        for name, kind in published.items():
            under = [source for source in sources if name.startswith(source + "/")]
            if under:
                self._find_camera(max(under, key=len), name, kind)
        self._turn_pictures()
        if self._feed is not None:
            self._feed.look(sources, published, partial(self._listen, who="feed"))

    def _listen_to(self, source: str, published: dict[str, str]) -> None:
        scene = self._scene

        def labels(raw: bytes) -> None:
            scene.take_labels(source, parse_label_info(raw))

        def warnings(raw: bytes) -> None:
            scene.take_warnings(source, parse_diagnostics(raw)[1])

        def states(raw: bytes) -> None:
            scene.take_states(source, *parse_diagnostics(raw))

        def fused(raw: bytes) -> None:
            scene.take_fused(source, parse_detections(raw, with_scores=True))

        if f"{source}/{contract.LABELS}" in published:
            self._listen(f"{source}/{contract.LABELS}", contract.LABEL_INFO, labels, latched=True)
        self._listen(f"{source}/{contract.OOD_WARNINGS}", contract.DIAGNOSTICS, warnings)
        if f"{source}/{contract.TRACK_STATUS}" in published:
            self._listen(f"{source}/{contract.TRACK_STATUS}", contract.DIAGNOSTICS, states)
        else:
            self._listen(f"{source}/{contract.FUSED_CLASSES}", contract.DETECTIONS, fused)

    def _find_camera(self, source: str, topic: str, kind: str) -> None:
        name = topic[len(source) + 1 :]
        if kind == contract.DETECTIONS and name.endswith("/views"):
            camera = name.removesuffix("/views")
            self._listen(
                topic,
                kind,
                lambda raw: self._scene.take_views(
                    source, camera, parse_detections(raw, with_scores=True, most=1)
                ),
            )
        elif kind == contract.IMAGE and name.endswith("/annotated"):
            self._pictures[camera_name(source, name.removesuffix("/annotated"))] = topic

    def _diagnostics(self, raw: bytes) -> None:
        self._scene.take_diagnostics(parse_diagnostics(raw)[1])

    def _turn_pictures(self) -> None:
        with self._lock:
            looked = dict(self._looked)
        for camera, topic in self._pictures.items():
            if time.monotonic() - looked.get(camera, -LOOKED_AT) < LOOKED_AT:
                self._listen(topic, contract.IMAGE, self._picture(camera))
            elif topic in self._heard:
                self._node.destroy_subscription(self._heard.pop(topic))

    def _picture(self, camera: str) -> Callable[[bytes], None]:
        return lambda raw: self._scene.take_picture(camera, bytes(raw))

    def _listen(
        self, topic: str, kind: str, take: Callable[[bytes], None], latched: bool = False, who: str = ""
    ) -> None:
        if who + topic in self._heard or kind not in _TYPES:
            return
        qos = QoSProfile(depth=_DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT)
        if latched:
            qos = QoSProfile(
                depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
            )

        def heard(raw: bytes) -> None:
            try:
                take(raw)
            except InputError:
                self._scene.bad_messages += 1

        self._heard[who + topic] = self._node.create_subscription(_TYPES[kind], topic, heard, qos, raw=True)
