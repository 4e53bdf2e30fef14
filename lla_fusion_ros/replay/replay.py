"""The replay itself: open a bag, run the stages, write what was asked for."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Literal

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import CameraTopics, ViewTopics, Wiring
from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.engine.engine import FusionEngine
from lla_fusion_ros.replay.background import ahead
from lla_fusion_ros.replay.sinks import Sink
from lla_fusion_ros.replay.sources import ImageSource, Timed, ViewSource
from lla_fusion_ros.stream.fuse import FuseStage
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.errors import BagError
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.tally import Tally

Input = Literal["auto", "images", "views"]
# Batches the classifier may be ahead of the fusion: it keeps both cores busy and few images in memory.
_BATCHES_AHEAD = 2


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What a user may set about a replay.

    Attributes:
        use: what to fuse: the bag's images, its recorded views, or whichever it has (images first).
        start: seconds to skip at the beginning.
        device, precision: where and how the networks run.
        time_offsets: seconds by camera, added to the stamps of its detections before pairing.
    """

    fusion: FusionSettings = field(default_factory=FusionSettings)
    stream: StreamSettings = field(default_factory=StreamSettings)
    use: Input = "auto"
    start: float = 0.0
    device: str = "auto"
    precision: str = "auto"
    time_offsets: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What happened.

    Attributes:
        frames, views: how many were fused.
        seconds: wall time of the run, without loading the model.
        recorded: seconds of recording that were fused.
        counts: the counters of all cameras; those that begin with `dropped_` are losses.
        used: "images" or "views".
        interrupted: the user stopped it; everything written so far is complete.
    """

    frames: int
    views: int
    seconds: float
    recorded: float
    counts: Counter[str]
    used: str
    cameras: tuple[str, ...]
    interrupted: bool


def choose_input(wiring: Wiring, use: Input) -> Sequence[CameraTopics] | Sequence[ViewTopics]:
    """The cameras to fuse, or a sentence about what is missing."""
    if use != "views" and wiring.cameras:
        return wiring.cameras
    if use != "images" and wiring.views:
        return wiring.views
    wanted = {"images": "images with tracked detections", "views": "recorded views"}.get(use, "")
    reason = "; ".join(wiring.missing) or f"it has no {wanted}"
    raise BagError(f"the bag cannot be fused: {reason}")


def open_source(
    bag: Bag,
    cameras: Sequence[CameraTopics] | Sequence[ViewTopics],
    bundle: Bundle,
    options: ReplayOptions,
    tally: Tally,
) -> Iterable[list[Timed]]:
    """Frames of views; the networks are loaded only where images have to be classified."""
    start = bag.summary.start + int(options.start * 1e9) if options.start else 0
    views = [camera for camera in cameras if isinstance(camera, ViewTopics)]
    if views:
        return ViewSource(bag, views, bundle, options.stream, tally, start)
    from lla_fusion_ros.networks.classifier import Classifier
    from lla_fusion_ros.stream.classify import ClassifyStage

    classifier = Classifier(bundle, options.device, options.precision)
    classifier.warm_up()
    stage = ClassifyStage(classifier, bundle.input_size, bundle.crop_margin, options.stream, tally)
    named = [camera for camera in cameras if isinstance(camera, CameraTopics)]
    workers = len(os.sched_getaffinity(0)) if classifier.device.type == "cpu" else 1
    return ImageSource(bag, named, stage, options.stream, tally, options.time_offsets, start, workers)


def replay(
    bag: Bag,
    wiring: Wiring,
    bundle: Bundle,
    options: ReplayOptions,
    sinks: Sequence[Sink],
    progress: Callable[[int, int], None] | None = None,
) -> ReplayResult:
    """Fuse a bag; `progress` hears the recorder's time and the number of views since the last call."""
    cameras = choose_input(wiring, options.use)
    tally = Tally()
    source = open_source(bag, cameras, bundle, options, tally)
    used = "views" if isinstance(cameras[0], ViewTopics) else "images"
    names = tuple(camera.name for camera in cameras)
    return fuse_frames(source, bundle, options.fusion, tally, sinks, used, names, progress)


def fuse_frames(
    source: Iterable[list[Timed]],
    bundle: Bundle,
    settings: FusionSettings,
    tally: Tally,
    sinks: Sequence[Sink],
    used: str,
    cameras: tuple[str, ...],
    progress: Callable[[int, int], None] | None = None,
) -> ReplayResult:
    """Fuse frames in order and hand every fused one to the sinks; the source works ahead in a thread."""
    fuse = FuseStage(FusionEngine(bundle, settings), tally)
    first: int | None = None
    last = 0
    frames = views = 0
    interrupted = False
    began = time.monotonic()
    try:
        with closing(ahead(source, _BATCHES_AHEAD)) as batches:  # type: ignore[type-var]
            for batch in batches:
                done = 0
                for moment, frame in batch:
                    for fused in fuse([frame]):
                        for sink in sinks:
                            sink.take(moment, fused)
                        frames += 1
                        done += len(fused.result.kept)
                    first = moment if first is None else first
                    last = moment
                views += done
                if progress is not None and batch:
                    progress(last, done)
    except KeyboardInterrupt:
        interrupted = True
    return ReplayResult(
        frames=frames,
        views=views,
        seconds=time.monotonic() - began,
        recorded=(last - first) / 1e9 if first is not None else 0.0,
        counts=tally.total(),
        used=used,
        cameras=cameras,
        interrupted=interrupted,
    )
