"""The replay itself: a Perception fed from a bag, a few frames ahead of the sinks that take what it fused."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar, cast

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import CameraTopics, ViewTopics, Wiring
from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.replay.sinks import PlacedSink, Sink
from lla_fusion_ros.replay.sources import Carry, bag_views, make_perception
from lla_fusion_ros.stream.frames import ViewFrame
from lla_fusion_ros.stream.identity import Chosen
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.stream.stream_settings import CameraWiring, StreamSettings
from lla_fusion_ros.types.errors import BagError
from lla_fusion_ros.types.settings import FusionSettings

if TYPE_CHECKING:
    from lla_fusion_ros.networks.classifier import Classifier

Input = Literal["auto", "images", "views"]
Item = TypeVar("Item")
# Share of the detections that may find no image before it is worth a word.
_ACCIDENTS = 0.1


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What a user may set about a replay.

    Attributes:
        use: what to fuse: the bag's images, its recorded views, or whichever it has (images first).
        start: seconds to skip at the beginning.
        device, precision, engine: where and how the networks run.
        wiring: by camera, where it is not the default; the type of its detections is the recorded one.
    """

    fusion: FusionSettings = field(default_factory=FusionSettings)
    stream: StreamSettings = field(default_factory=StreamSettings)
    use: Input = "auto"
    start: float = 0.0
    device: str = "auto"
    precision: str = "auto"
    wiring: dict[str, CameraWiring] = field(default_factory=dict)
    engine: str = "auto"


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What happened.

    Attributes:
        frames, views: how many were fused.
        seconds: wall time of the run, without loading the model.
        recorded: seconds of recording that were fused.
        counts, by_camera: the counters of all cameras, and of each; `dropped_…` are losses.
        hints: by camera, why messages found no partner, where some were lost to that, and what would be
            fused wrongly.
        used: "images", "views" or "scores".
        chosen: by camera, what its detections were taken for.
        interrupted: the user stopped it; everything written so far is complete.
    """

    frames: int
    views: int
    seconds: float
    recorded: float
    counts: Counter[str]
    by_camera: dict[str, Counter[str]]
    hints: dict[str, str]
    used: str
    cameras: tuple[str, ...]
    chosen: dict[str, Chosen]
    interrupted: bool

    @property
    def losses(self) -> list[str]:
        """What was not fused and why, in sentences."""
        lost = {
            name.removeprefix("dropped_").replace("_", " "): count
            for name, count in sorted(self.counts.items())
            if name.startswith("dropped_") and count
        }
        notes = [f"not fused: {', '.join(f'{count} {why}' for why, count in lost.items())}"] if lost else []
        notes += [
            f"camera {camera}: {hint} (in a replay: --time-offset {camera}=S, --set NAME=VALUE)"
            for camera, hint in self.hints.items()
        ]
        if self.interrupted:
            notes.append("interrupted: everything up to then is here")
        return notes


def choose_input(wiring: Wiring, options: ReplayOptions) -> Sequence[CameraTopics] | Sequence[ViewTopics]:
    """The cameras to fuse, or a sentence about what is missing."""
    use = options.use
    cameras = (use != "views" and wiring.cameras) or (use != "images" and wiring.views)
    if not cameras:
        wanted = {"images": "images with tracked detections", "views": "recorded views"}.get(use, "")
        reason = "; ".join(wiring.missing) or f"it has no {wanted}"
        raise BagError(f"the bag cannot be fused: {reason}")
    names = [camera.name for camera in cameras]
    for unknown in sorted(options.wiring.keys() - set(names)):
        raise BagError(f"there is no camera '{unknown}'; the bag has {', '.join(names)}")
    return cameras


def replay(
    bag: Bag,
    wiring: Wiring,
    bundle: Bundle,
    options: ReplayOptions,
    sinks: Sequence[Sink],
    progress: Callable[[int, int], None] | None = None,
    networks: Callable[[], Classifier] | None = None,
    carry: Carry | None = None,
) -> ReplayResult:
    """Fuse a bag; `progress` hears the recorder's time and the number of views since the last call.

    Args:
        networks: gives those that were loaded for an earlier bag; the replay then keeps to one core.
        carry: see `bag_views`.
    """
    cameras = choose_input(wiring, options)
    how = options.stream, options.fusion, options.device, options.precision, options.wiring
    perception = make_perception(bundle, cameras, *how, options.engine, networks)
    for sink in sinks:
        if isinstance(sink, PlacedSink):
            sink.begin(perception.joining.geometry, bundle.class_names)
    start = bag.summary.start + int(options.start * 1e9) if options.start else 0
    source = bag_views(bag, cameras, perception, bundle, start, wiring.objects, carry)
    used = "views" if isinstance(cameras[0], ViewTopics) else "scores" if bundle.for_scores else "images"
    return fuse_frames(source, perception, sinks, used, progress, one_core=networks is not None)


def fuse_frames(
    source: Iterable[list[ViewFrame]],
    perception: Perception,
    sinks: Sequence[Sink],
    used: str,
    progress: Callable[[int, int], None] | None = None,
    one_core: bool = False,
) -> ReplayResult:
    """Fuse frames in order and hand every fused one to the sinks.

    Unless it keeps to one core, the source works ahead in a thread.
    """
    first: int | None = None
    last = 0
    frames = views = 0
    interrupted = False
    began = time.monotonic()
    try:
        with closing((batch for batch in source) if one_core else ahead(source)) as batches:
            for batch in batches:
                done = 0
                for fused in perception.fuse(batch):
                    for sink in sinks:
                        sink.take(fused.frame.completed, fused)
                    frames += 1
                    done += len(fused.result.kept)
                views += done
                if batch:
                    first = batch[0].completed if first is None else first
                    last = batch[-1].completed
                    if progress is not None:
                        progress(last, done)
    except KeyboardInterrupt:
        interrupted = True
    return ReplayResult(
        frames=frames,
        views=views,
        seconds=time.monotonic() - began,
        recorded=(last - first) / 1e9 if first is not None else 0.0,
        counts=perception.tally.total(),
        by_camera={camera: perception.tally.of(camera) for camera in perception.cameras},
        hints=_hints(perception),
        used=used,
        cameras=perception.cameras,
        chosen=dict(perception.chosen),
        interrupted=interrupted,
    )


def _hints(perception: Perception) -> dict[str, str]:
    """Why messages found no partner, where that is more than an accident, and troubles, by camera."""
    queue, troubles = perception.queue, perception.troubles()
    hints = {camera: [troubles[camera]] for camera in troubles}
    unpaired = {name for name in queue.losses.values() if name.startswith("dropped_")}
    for camera in perception.cameras:
        counts = perception.tally.of(camera)
        if sum(counts[name] for name in unpaired) > _ACCIDENTS * counts["detections"]:
            hints.setdefault(camera, []).append(queue.hint(camera))
    return {camera: "; ".join(filter(None, own)) for camera, own in hints.items() if any(own)}


def ahead(items: Iterable[Item]) -> Generator[Item, None, None]:
    """The items in their order, the next one made in a thread while one is used; few images are in memory."""
    source, end = iter(items), object()
    with ThreadPoolExecutor(1, "replay source") as pool:
        coming = pool.submit(next, source, end)
        while (item := coming.result()) is not end:
            coming = pool.submit(next, source, end)
            yield cast(Item, item)
