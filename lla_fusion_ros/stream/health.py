"""How the work goes, as diagnostics: rates, latency, losses, silent cameras."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from threading import Lock

import numpy as np

from lla_fusion_ros.stream.tally import Tally
from lla_fusion_ros.wire.status import ERROR, OK, WARN, Status

_LATENCIES = 500  # of the newest frames
_IMAGES_TO_NOTICE = 3  # images without a frame between two reports that are worth a word
_LOSS = "dropped_"
INTERNAL_ERROR = "dropped_internal_error"


class Health:
    """Collects what happens and reports it. Times are seconds of any steady clock; threads may share it.

    Args:
        silent_after: seconds without a message after which a camera counts as silent.
    """

    def __init__(self, node: str, cameras: Sequence[str], tally: Tally, silent_after: float) -> None:
        self._node = node
        self._cameras = tuple(cameras)
        self._tally = tally
        self._silent_after = silent_after
        self._lock = Lock()
        self._heard: dict[str, float] = {}
        self._latency: deque[float] = deque(maxlen=_LATENCIES)
        self._work: deque[float] = deque(maxlen=_LATENCIES)
        self._reported: dict[str, Counter[str]] = {camera: Counter() for camera in cameras}
        self._reported_at: float | None = None
        self._internal_errors = 0

    def hear(self, camera: str, now: float) -> None:
        """A message of this camera came."""
        self._heard[camera] = now

    def finish(self, latency: float, work: float) -> None:
        """A frame is out: seconds since its stamp, and seconds of work it took."""
        with self._lock:
            self._latency.append(latency)
            self._work.append(work)

    def silent(self, now: float) -> frozenset[str]:
        """Cameras from which nothing comes."""
        return frozenset(
            camera for camera in self._cameras if now - self._heard.get(camera, -np.inf) > self._silent_after
        )

    def report(
        self,
        now: float,
        values: Mapping[str, str],
        troubles: Mapping[str, str] | None = None,
        waiting: Mapping[str, Mapping[str, int]] | None = None,
    ) -> list[Status]:
        """A status of the node and one of each camera, over the time since the last report.

        Args:
            values: more about the node.
            troubles: what else is wrong, by camera.
            waiting: how much waits for what, by camera.
        """
        elapsed = max(now - self._reported_at, 1e-3) if self._reported_at is not None else np.inf
        self._reported_at = now
        cameras = [
            self._camera(camera, now, elapsed, (troubles or {}).get(camera), (waiting or {}).get(camera, {}))
            for camera in self._cameras
        ]
        worst = max((status.level for status in cameras), default=OK)
        bad = [status.name.rpartition(" ")[2] for status in cameras if status.level != OK]
        message = "all cameras well" if not bad else f"see camera {', '.join(bad)}"
        total = self._tally.total()
        if total[INTERNAL_ERROR] > self._internal_errors:
            self._internal_errors = total[INTERNAL_ERROR]
            worst, message = ERROR, "frames were lost to an internal error, see the log"
        losses = {key: str(count) for key, count in sorted(total.items()) if key.startswith(_LOSS)}
        own = Status(worst, self._node, message, "", {**values, **self._latencies(), **losses})
        return [own, *cameras]

    def _camera(
        self, camera: str, now: float, elapsed: float, trouble: str | None, waiting: Mapping[str, int]
    ) -> Status:
        counts = self._tally.of(camera)
        fresh = counts - self._reported[camera]
        self._reported[camera] = counts
        lost = {key.removeprefix(_LOSS): count for key, count in fresh.items() if key.startswith(_LOSS)}
        values = {
            "rate": f"{fresh['frames'] / elapsed:.2f}",
            **{key: str(count) for key, count in sorted({**counts, **waiting}.items())},
        }
        name = f"{self._node}: camera {camera}"
        if trouble is not None:
            return Status(ERROR, name, trouble, camera, values)
        if camera in self.silent(now):
            heard = self._heard.get(camera)
            message = "nothing received yet" if heard is None else f"silent for {now - heard:.1f} s"
            return Status(WARN, name, message, camera, values)
        if fresh["images"] >= _IMAGES_TO_NOTICE and not fresh["frames"]:
            message = f"{fresh['images']} images, but no frame: do detections come, with the images' stamps?"
            return Status(WARN, name, message, camera, values)
        if lost:
            message = "lost " + ", ".join(f"{count} {reason}" for reason, count in sorted(lost.items()))
            return Status(WARN, name, message, camera, values)
        return Status(OK, name, "well", camera, values)

    def _latencies(self) -> dict[str, str]:
        with self._lock:
            latency, work = list(self._latency), list(self._work)
        if not latency:
            return {}
        low, high = np.percentile(latency, [50, 95]) * 1e3
        return {
            "latency p50 ms": f"{low:.1f}",
            "latency p95 ms": f"{high:.1f}",
            "work per frame ms": f"{np.mean(work) * 1e3:.2f}",
        }
