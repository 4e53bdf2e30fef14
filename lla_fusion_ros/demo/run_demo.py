"""The demo from beginning to end: render, play through the real nodes, look at what they published."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.writer import check_removable
from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.demo.live import LiveState
from lla_fusion_ros.demo.processes import DemoError, Processes
from lla_fusion_ros.demo.recorded import AgreementSink, RecordedRun
from lla_fusion_ros.lab.makebag.write import MadeBag, SceneFrame, drive_frames, make_bag
from lla_fusion_ros.replay.output_folder import Outcome, OutputFolder, Wanted
from lla_fusion_ros.replay.replay import ReplayOptions, fuse_frames
from lla_fusion_ros.replay.video import VideoSink
from lla_fusion_ros.report.comparison import COMPARED
from lla_fusion_ros.signworld import CLASS_NAMES, CameraFrame, Drive
from lla_fusion_ros.signworld.geometry import rig_of

DRIVE, FUSED, VIDEO, LOGS = "drive", "fused", "annotated.mp4", "logs"
_START_TIMEOUT = 60.0  # seconds; a busy machine takes long to import torch
_QUIET = 15.0  # seconds without a message, the bag at its end, after which missing frames count as lost

Tell = Callable[[str], None]
Watch = Callable[[LiveState], None]

_drive: Drive | None = None  # in each worker process


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What the demo leaves: the outcome of the run, and how well live and offline agree."""

    outcome: Outcome
    made: MadeBag
    recording: Path
    video: Path
    frames_sent: int
    frames_fused: int
    agreement: float
    agreement_frames: int


class Demo:
    """Steps of the demo; `tell` hears what is going on, `watch` sees the live state a few times a second.

    Args:
        without_ids: the nodes get boxes as a detector without a tracker sends them. Each camera tracks for
            itself then, and geometry tells which tracks are one object.
    """

    def __init__(
        self,
        folder: Path,
        model: Path,
        drive: Drive,
        rate: float,
        tell: Tell,
        watch: Watch,
        domain: int | None = None,
        without_ids: bool = True,
    ) -> None:
        self._domain = domain
        self._without_ids = without_ids
        self._folder, self._model, self._drive, self._rate = folder, model, drive, rate
        self._tell, self._watch = tell, watch
        self._state = LiveState()

    def run(self) -> DemoResult:
        self._prepare()
        cameras = self._drive.camera_names
        with Processes(self._folder / LOGS, self._domain) as processes:
            # the nodes load their model while the drive is rendered
            lines = self._start_nodes(processes, cameras)
            self._tell(f"rendering {len(self._drive)} frames of a drive with {len(cameras)} cameras")
            made = self._render(processes)
            self._play(processes, lines, made.frames)
        return self._look_back(made)

    def _prepare(self) -> None:
        """An earlier demo's bags and logs go; anything else in the folder stays, whatever it is called."""
        bags = [self._folder / name for name in (DRIVE, FUSED)]
        for bag in bags:
            check_removable(bag)
        self._folder.mkdir(parents=True, exist_ok=True)
        for bag in bags:
            shutil.rmtree(bag, ignore_errors=True)
        for log in (self._folder / LOGS).glob("*.log"):
            log.unlink()

    def _start_nodes(self, processes: Processes, cameras: tuple[str, ...]) -> SimpleQueue[str]:
        names = "[" + ", ".join(cameras) + "]"
        # long waiting lines: a busy machine may lag behind the drive, but nothing is to be lost
        lines = {"queue_depth": "200", "input_depth": "200", "output_depth": "1000"}
        # the sign world names its objects for both cameras
        own_ids = {"identity": "auto" if self._without_ids else "global"}
        parameters = {"model": str(self._model), "cameras": names, "use_sim_time": "true", **own_ids, **lines}
        parameters["listed_mass"] = "1.0"  # the page shows whole distributions
        words = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
        processes.start("perception", "lla_fusion_ros.ros perception", ["--ros-args", *words])
        words = ["--out", str(self._folder / FUSED), "--cameras", *cameras]
        words += ["--ros-args", "-p", "use_sim_time:=true"]
        recorder = processes.start("recorder", "lla_fusion_ros.ros recorder", words, piped=True)
        assert recorder.stdout is not None
        return _lines(recorder.stdout)

    def _render(self, processes: Processes) -> MadeBag:
        def frames() -> Iterator[SceneFrame]:
            with closing(render(self._drive)) as rendered:
                for frame in drive_frames(rendered):
                    processes.check("perception", "recorder")  # nobody should wait for a demo that cannot be
                    self._state.rendered += 1
                    self._watch(self._state)
                    yield frame

        return make_bag(
            frames(),
            self._folder / DRIVE,
            "signworld demo drive",
            CLASS_NAMES,
            "jpeg",
            overwrite=True,
            with_ids=not self._without_ids,
            rig=rig_of(self._drive),
        )

    def _play(self, processes: Processes, lines: SimpleQueue[str], frames: int) -> None:
        state = self._state
        self._tell("waiting for the nodes")
        deadline = time.monotonic() + _START_TIMEOUT
        while not state.labels:
            _drain(lines, state)
            processes.check("perception", "recorder")
            if time.monotonic() > deadline:
                raise DemoError(
                    f"the perception node did not start within {_START_TIMEOUT:g} s; see {processes.logs}"
                )
            time.sleep(0.1)
        self._tell(f"playing the drive over DDS (domain {processes.environment['ROS_DOMAIN_ID']})")
        player = processes.start(
            "bag_player",
            "lla_fusion_ros.ros bag_player",
            [str(self._folder / DRIVE), "--rate", str(self._rate), "--wait", "30"],
        )
        heard = time.monotonic()
        while state.frames < frames and time.monotonic() - heard < _QUIET:
            if _drain(lines, state) or player.poll() is None:
                heard = time.monotonic()
            processes.check("perception", "recorder")
            self._watch(state)
            time.sleep(0.1)
        if player.wait() != 0:
            processes.check("bag_player")
        if not state.frames:
            raise DemoError(f"{frames} frames were played, and nothing fused came back; see {processes.logs}")
        for name in ("perception", "recorder"):
            processes.stop(name)

    def _look_back(self, made: MadeBag) -> DemoResult:
        self._tell("writing table, video and report")
        bundle = load_bundle(self._model)
        options = ReplayOptions()
        wanted = Wanted(
            bag=False,
            truth=made.truth,
            compare=COMPARED,
            overwrite=True,
            title="A drive through the sign world",
        )
        video_path = self._folder / VIDEO
        with Bag(self._folder / FUSED) as recording, Bag(made.bag) as fed:
            source = RecordedRun(recording, fed, bundle, options.fusion)
            agreement = AgreementSink(source.live)
            rate = self._drive.settings.rate
            with (
                OutputFolder(self._folder, bundle, options, wanted, made.bag) as outputs,
                VideoSink(video_path, made.cameras, bundle.class_names, rate) as video,
            ):
                sinks = [*outputs.sinks, video, agreement]
                used = "the live nodes' views"
                result = fuse_frames(source, source.perception, sinks, used)
            outcome = outputs.finish(result, ())
            sent = made.frames
            fused = len(source.live)
        return DemoResult(
            outcome, made, self._folder / FUSED, video_path, sent, fused, agreement.largest, agreement.frames
        )


def _lines(stream: IO[str]) -> SimpleQueue[str]:
    """Lines of a child as they come, read by a thread so that nobody waits for them."""
    lines: SimpleQueue[str] = SimpleQueue()

    def read() -> None:
        for line in stream:
            lines.put(line)

    Thread(target=read, daemon=True).start()
    return lines


def _drain(lines: SimpleQueue[str], state: LiveState) -> int:
    count = 0
    while True:
        try:
            state.take(lines.get_nowait())
        except Empty:
            return count
        count += 1


def render(drive: Drive, workers: int = 0) -> Generator[CameraFrame, None, None]:
    """All frames of the drive; `workers` 0 takes a process per core."""
    count = workers or min(os.cpu_count() or 1, 8)
    if count == 1:
        yield from drive
        return
    context = multiprocessing.get_context("fork")
    with context.Pool(count, _start, (drive,)) as pool:
        yield from pool.imap(_frame, drive.schedule(), chunksize=4)


def _start(drive: Drive) -> None:
    global _drive
    _drive = drive
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who asked for the frames
    # A handler that the parent had (rclpy's) would swallow the signal by which the pool ends its workers.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _frame(place: tuple[int, int]) -> CameraFrame:
    assert _drive is not None
    return _drive.frame(*place)
