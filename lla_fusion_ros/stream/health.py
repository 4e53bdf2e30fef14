"""How the work goes, as diagnostics: rates, latency, losses and their likely causes, silent cameras."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from threading import Lock

import numpy as np

from lla_fusion_ros.messages.status import ERROR, OK, WARN, Status
from lla_fusion_ros.stream.pairing import SECOND, Limits, Misfit
from lla_fusion_ros.types.tally import Tally

_LATENCIES = 500  # of the newest frames
# Seconds. A stamp further from the node's clock is of another one: a recording without use_sim_time, say.
_OLDEST, _NEWEST = 60.0, -1.0
_IMAGES_TO_NOTICE = 3  # images without a frame between two reports that are worth a word
_LOSS = "dropped_"
_ON_THE_WAY = {"images_lost", "detections_lost", "crops_lost", "views_lost", "embeddings_lost"}
_LOST_FOR = 10.0  # seconds after a loss in DDS in which boxes without images are put down to it
_BUSY = 0.8  # share of the time at work from which on the networks count as behind
# Counts of boxes that settings leave out, by design, and what helps where they leave out all.
_LEFT_OUT = {
    "not_tracked": "lower tracker_sure or tracker_confirm",
    "dropped_box_too_small": "lower min_box_size, or see box_frame",
}
_BOXES_TO_NOTICE = 100  # left out without one that was used
_UNPAIRED = {"detections_without_image", "detections_too_late", "detections_before_image"}
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
        self._lost_at: dict[str, float] = {}  # by camera: when DDS last lost something
        self._worked = 0.0  # seconds since the last report
        self._internal_errors = 0
        self.unpaired: dict[str, str] = {}  # by camera: why boxes found no image since the report before

    def hear(self, camera: str, now: float) -> None:
        """A message of this camera came."""
        self._heard[camera] = now

    def finish(self, latency: float, work: float) -> None:
        """A frame is out: seconds since its stamp, and seconds of work it took."""
        with self._lock:
            self._latency.append(latency if _NEWEST <= latency <= _OLDEST else np.nan)
            self._work.append(work)
            self._worked += work

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
        hints: Mapping[str, str] | None = None,
        wiring: Mapping[str, Mapping[str, str]] | None = None,
    ) -> list[Status]:
        """A status of the node and one of each camera, over the time since the last report.

        Args:
            values: more about the node.
            troubles: what else is wrong, by camera.
            waiting: how much waits for what, by camera.
            hints: why images and detections may find no partner, by camera.
            wiring: how each camera is connected.
        """
        elapsed = max(now - self._reported_at, 1e-3) if self._reported_at is not None else np.inf
        self._reported_at = now
        with self._lock:
            busy, self._worked = min(self._worked / elapsed, 1.0), 0.0
        cameras = [
            self._camera(
                camera,
                now,
                elapsed,
                busy,
                (troubles or {}).get(camera),
                (waiting or {}).get(camera, {}),
                (hints or {}).get(camera, ""),
                (wiring or {}).get(camera, {}),
            )
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
        own = Status(
            worst, self._node, message, "", {**values, **self._latencies(), "busy": f"{busy:.0%}", **losses}
        )
        return [own, *cameras]

    def _camera(
        self,
        camera: str,
        now: float,
        elapsed: float,
        busy: float,
        trouble: str | None,
        waiting: Mapping[str, int],
        hint: str,
        wiring: Mapping[str, str],
    ) -> Status:
        counts = self._tally.of(camera)
        fresh = counts - self._reported[camera]
        self._reported[camera] = counts
        self.unpaired[camera] = ""
        values = {
            **wiring,
            "rate": f"{fresh['frames'] / elapsed:.2f}",
            **{key: str(count) for key, count in sorted({**counts, **waiting}.items())},
        }
        name = f"{self._node}: camera {camera}"
        if trouble is not None:
            return Status(ERROR, name, trouble, camera, values)
        if any(fresh[_LOSS + reason] for reason in _ON_THE_WAY):
            self._lost_at[camera] = now
        on_the_way = now - self._lost_at.get(camera, -np.inf) < _LOST_FOR
        if camera in self.silent(now):
            heard = self._heard.get(camera)
            message = "nothing received yet" if heard is None else f"silent for {now - heard:.1f} s"
            if fresh["detections"]:
                message = self.unpaired[camera] = f"{fresh['detections']} detections, but no image"
            return Status(WARN, name, message, camera, values)
        if problems := [*_problems(fresh, hint, busy, on_the_way), *_nothing_used(counts)]:
            self.unpaired[camera] = hint if hint in problems else ""
            return Status(WARN, name, "; ".join(problems), camera, values)
        return Status(OK, name, "well", camera, values)

    def _latencies(self) -> dict[str, str]:
        with self._lock:
            latency, work = np.array(self._latency), list(self._work)
        known = latency[np.isfinite(latency)]
        if not work:
            return {}
        values = {"work per frame ms": f"{np.mean(work) * 1e3:.2f}"}
        if not len(known):
            return {"latency": "unknown, the stamps are not of this node's clock", **values}
        low, high = np.percentile(known, [50, 95]) * 1e3
        return {"latency p50 ms": f"{low:.1f}", "latency p95 ms": f"{high:.1f}", **values}


def _problems(fresh: Counter[str], hint: str, busy: float, on_the_way: bool) -> list[str]:
    """What went wrong with the messages of a camera since the last report.

    Args:
        busy: share of the time at work.
        on_the_way: whether DDS loses messages; then boxes miss images whatever their stamps are.
    """
    losses = [key for key in fresh if key.startswith(_LOSS) and key not in _LEFT_OUT]
    lost = {key.removeprefix(_LOSS): fresh[key] for key in losses}
    problems = []
    no_frame = fresh["images"] >= _IMAGES_TO_NOTICE and not fresh["frames"]
    if no_frame:
        problems.append(f"{fresh['images']} images, but no frame")
        if not fresh["detections"]:
            return [*problems, "no detections come"]
    if lost:
        problems.append("lost " + ", ".join(f"{count} {reason}" for reason, count in sorted(lost.items())))
    if on_the_way and not lost.keys().isdisjoint(_ON_THE_WAY | _UNPAIRED | {"queue_full"}):
        problems.append(
            "DDS loses messages before they reach this node: send compressed images, or start the camera's "
            "driver with the profile config/fastdds.xml"
        )
    elif "queue_full" in lost:
        problems.append(
            f"the networks are behind, busy {busy:.0%} of the time: use fewer cameras or a faster device"
            if busy >= _BUSY
            else f"frames come in bursts, the networks are busy {busy:.0%} of the time: raise queue_depth"
        )
    elif hint and (not lost.keys().isdisjoint(_UNPAIRED) or (no_frame and not lost)):
        problems.append(hint)
    return problems


def _nothing_used(counts: Counter[str]) -> list[str]:
    """What to do where settings leave out every box; with the counts since the beginning."""
    left_out = {key: counts[key] for key in _LEFT_OUT if counts[key]}
    if counts["crops"] or sum(left_out.values()) < _BOXES_TO_NOTICE:
        return []
    told = (f"{count} {key.removeprefix(_LOSS)} ({_LEFT_OUT[key]})" for key, count in left_out.items())
    return [f"no box was ever used: {', '.join(told)}"]


def pairing_hint(camera: str, misfit: Misfit, limits: Limits) -> str:
    """Why detections found no image: the likely cause and the way out."""
    seconds = misfit.nanoseconds / SECOND
    if misfit.loss == "second_early":
        return (
            f"detections come before the image of their stamp, {seconds:.3f} s ahead: where the detector "
            f"stamps late, set {camera}.time_offset to {-seconds:.3f}; where images are slow, raise sync_lead"
        )
    if misfit.loss == "second_late":
        name = "sync_wait" if misfit.nanoseconds > limits.wait else "sync_memory"
        return (
            f"detections come {seconds:.2f} s after their image, which could not wait so long: raise {name}"
        )
    if abs(misfit.nanoseconds) <= limits.tolerance:
        return "detections come twice for the same image: do two detectors send them?"
    return (
        f"the stamps of detections differ by {seconds:+.3f} s from the nearest image's: the detector should "
        f"copy the image's stamp; a fixed difference can be set, {camera}.time_offset: {-seconds:.3f}"
    )
