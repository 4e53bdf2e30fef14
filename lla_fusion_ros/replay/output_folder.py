"""A replay with everything it leaves behind: fused bag, table, report and scores in one folder."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lla_fusion_ros.bags.describe import why_nothing_can_be_fused
from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import CameraTopics, find_cameras, name_cameras
from lla_fusion_ros.bags.writer import BagWriter, check_removable
from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.reliance.decisions import read_costs
from lla_fusion_ros.reliance.statements import COVERAGES, USUAL_COVERAGE
from lla_fusion_ros.replay.replay import ReplayOptions, ReplayResult, choose_input, replay
from lla_fusion_ros.replay.sinks import BagSink, CsvSink, Sink, writing
from lla_fusion_ros.replay.sources import Carry, with_names
from lla_fusion_ros.replay.video import VideoSink
from lla_fusion_ros.report.page import ReportInput, write_report
from lla_fusion_ros.report.scoring import ReplayScores, ScoreSink
from lla_fusion_ros.report.track_table import TrackTable
from lla_fusion_ros.report.tracks import TimelineSink
from lla_fusion_ros.report.truth import FORMAT, read_truth
from lla_fusion_ros.stream.statement_messages import Statements
from lla_fusion_ros.types.errors import BagError, InputError, LlaFusionError

if TYPE_CHECKING:
    from lla_fusion_ros.networks.classifier import Classifier

FUSED_BAG, TABLE, REPORT, SCORES, VIDEO = "fused", "fused.csv", "report.html", "scores.json", "video.mp4"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to write.

    Attributes:
        views: also each camera's views and embeddings, so that the result can be fused again.
        coverage: of the sets on `/class_sets` and `/track_status`, in the bag too; 0: neither is there.
        costs: file of the costs of `/decisions`, in the bag too; empty: there are none.
        compare: further fusers to score where a truth is given.
        cameras: NAME=IMAGE_TOPIC,DETECTIONS_TOPIC; empty: find them.
        tracks: keep a record of every track and warning for `Outcome.tracks`.
        unknown_classes: score even where the bundle does not know most classes of the truth.
    """

    bag: bool = True
    views: bool = True
    coverage: float = 0.0
    costs: str = ""
    table: bool = True
    report: bool = True
    video: bool = False
    truth: Path | None = None
    compare: Sequence[str] = ()
    cameras: Sequence[str] = ()
    overwrite: bool = False
    title: str = ""
    tracks: bool = False
    unknown_classes: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done; `files` are those written, in the order a reader would want them."""

    result: ReplayResult
    scores: ReplayScores | None
    notes: tuple[str, ...]
    files: tuple[Path, ...]
    fuser: str
    tracks: TrackTable


class OutputFolder:
    """The sinks that write a run into a folder; a `with` statement keeps them open, `finish` writes the rest.

    A run that fails leaves the folder as it was, also where it was to overwrite earlier results.

    Args:
        source: what was fused, as the report calls it.
        cameras, rate: names, and frames per second of each, for the video.
    """

    def __init__(
        self,
        folder: Path,
        bundle: Bundle,
        options: ReplayOptions,
        wanted: Wanted,
        source: Path,
        cameras: Sequence[str] = (),
        rate: float = 10.0,
    ) -> None:
        self._cameras, self._rate = cameras, rate
        self._folder, self._bundle, self._options, self._wanted = folder, bundle, options, wanted
        self._source = source
        self._stack = ExitStack()
        self._files: list[Path] = []
        self._new_folders = [place for place in (folder, *folder.parents) if not place.exists()]
        self._before: Path | None = None  # where earlier results wait until they are replaced
        self.fuser = options.fusion.fuser or bundle.meta.default_fuser
        self.truth = None if wanted.truth is None else read_truth(wanted.truth)
        # whatever is wrong with fusers, truth or costs is said before anything is written
        stated = self._stated()
        self._statements = stated if wanted.coverage or wanted.costs else None
        self.timelines = TimelineSink(self.truth, stated if stated.reliance is not None else None)
        bundle.fuser(self.fuser, options.fusion.window)
        self._scorer = (
            None
            if self.truth is None
            else ScoreSink(self.truth, bundle, options.fusion, wanted.compare, wanted.unknown_classes)
        )
        self._tracks = TrackTable(bundle.class_names)
        self.sinks: list[Sink] = []
        self.carry: Carry | None = None

    def __enter__(self) -> OutputFolder:
        try:
            self._open()
        except BaseException:
            self._fail()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._fail()
            return
        try:
            self._stack.close()
        except BaseException:
            self._fail()
            raise

    def _fail(self) -> None:
        """Remove what was begun, and put back what was there before."""
        with suppress(LlaFusionError):  # a full disk also keeps files from being closed properly
            self._stack.close()
        for file in self._files:
            if file.is_dir():
                shutil.rmtree(file)
            else:
                file.unlink(missing_ok=True)
        if self._before is not None:
            for old in self._before.iterdir():
                old.replace(self._folder / old.name)
            self._before.rmdir()
        for folder in self._new_folders:
            with suppress(OSError):
                folder.rmdir()

    def _open(self) -> None:
        wanted, folder = self._wanted, self._folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BagError(
                f"folder '{folder}' cannot be made: {error.strerror}; give another place with --out"
            ) from error
        self._set_aside()
        if wanted.bag:
            self._files.append(folder / FUSED_BAG)
            about = {"bundle": self._bundle.hash, "fuser": self.fuser, "source": self._source.name}
            writer = self._stack.enter_context(BagWriter(self._files[-1], about))
            sink = BagSink(writer, self._bundle, wanted.views, self._statements)
            self._stack.callback(sink.write_geometry)
            self.sinks.append(sink)
            self.carry = sink.carry
        if wanted.table:
            self._files.append(folder / TABLE)
            self.sinks.append(self._stack.enter_context(CsvSink(self._files[-1], self._bundle.class_names)))
        if wanted.video:
            self._files.append(folder / VIDEO)
            video = VideoSink(self._files[-1], self._cameras, self._bundle.class_names, self._rate)
            self.sinks.append(self._stack.enter_context(video))
        if wanted.report:
            self.sinks.append(self.timelines)
        if self._scorer is not None:
            self.sinks.append(self._scorer)
        if wanted.tracks:
            self.sinks.append(self._tracks)

    def _stated(self) -> Statements:
        """What a planner may rely on; sets and bounds are calibrated for one fuser."""
        wanted, bundle = self._wanted, self._bundle
        costs = read_costs(wanted.costs, bundle.class_names) if wanted.costs else None
        reliance = bundle.reliance() if self.fuser == bundle.meta.default_fuser else None
        coverage = wanted.coverage or USUAL_COVERAGE
        if not 0.5 <= coverage <= COVERAGES[-1]:
            raise InputError(f"coverage {coverage:g} cannot be promised: give 0.5 to {COVERAGES[-1]:g}")
        return Statements(bundle.class_names, reliance, costs, coverage, bundle.for_scores)

    def _set_aside(self) -> None:
        """Earlier results under the names of what will be written; without leave to overwrite, a refusal."""
        wanted = self._wanted
        parts = {FUSED_BAG: wanted.bag, TABLE: wanted.table, REPORT: wanted.report, SCORES: wanted.truth}
        parts[VIDEO] = wanted.video
        old = [self._folder / name for name, is_wanted in parts.items() if is_wanted]
        old = [place for place in old if place.exists()]
        if not old:
            return
        if not wanted.overwrite:
            raise BagError(f"'{old[0]}' exists already: give another place or --overwrite")
        if old[0].name == FUSED_BAG:
            check_removable(old[0])
        with writing(self._folder):
            self._before = Path(tempfile.mkdtemp(prefix=".before_replay_", dir=self._folder))
            for place in old:
                place.replace(self._before / place.name)

    def finish(self, result: ReplayResult, notes: Sequence[str]) -> Outcome:
        """Scores and report; call it when the `with` block is over."""
        every = (*notes, *result.losses)
        video = self._folder / VIDEO
        if video in self._files and not video.exists():
            self._files.remove(video)
            why = f"{result.used} are fused without images; Foxglove draws the fused bag onto its recording's"
            every += (f"there is no video: {'crops are no images' if result.used == 'images' else why}",)
        try:
            scores = self._scorer.scores() if self._scorer is not None and result.views else None
            if scores is not None and self._scorer is not None:
                every += self._scorer.judge.notes
                self._files.append(self._folder / SCORES)
                with writing(self._files[-1]):
                    self._files[-1].write_text(json.dumps(scores.as_dict(), indent=1) + "\n")
            if self._wanted.report:
                self._files.insert(0, self._folder / REPORT)
                with writing(self._files[0]):
                    write_report(self._report(result, scores, every), self._files[0])
        except LlaFusionError:
            self._fail()
            raise
        if self._before is not None:
            shutil.rmtree(self._before, ignore_errors=True)
        return Outcome(result, scores, every, tuple(self._files), self.fuser, self._tracks)

    def _report(self, result: ReplayResult, scores: ReplayScores | None, notes: Sequence[str]) -> ReportInput:
        tracks = len(self.timelines.tracks) + self.timelines.forgotten
        warned = sum(bool(track.reasons) for track in self.timelines.tracks.values())
        cameras = ", ".join(result.cameras)
        if len(cameras) > 30:  # longer names do not fit the tile
            cameras = f"{len(result.cameras)} cameras"
        facts = {
            "objects": f"{tracks:,}",
            "objects warned of": f"{warned}",
            f"views of {cameras}": f"{result.views:,}",
            "recorded": f"{result.recorded:.1f} s",
        }
        if result.used == "images" and result.seconds > 0 and result.recorded > 0:
            facts["of the speed of real time"] = f"{result.recorded / result.seconds:.1f}×"
        return ReportInput(
            title=self._wanted.title or f"Fused classes of {self._source.name}",
            subtitle=f"fused by {self.fuser} from {result.used} · model {bundle_line(self._bundle)} · "
            f"{self._source.name}: {', '.join(result.cameras)} · {self._changed_settings()}",
            class_names=self._bundle.class_names,
            timelines=self.timelines,
            fuser=self.fuser,
            facts=facts,
            settings={
                "bag": str(self._source),
                "truth": self.truth.data_set if self.truth is not None else "not given",
                **asdict(self._options.fusion),
                **asdict(self._options.stream),
                "fuser": self.fuser,
            },
            bundle=bundle_card(self._bundle),
            scores=scores,
            notes=notes,
        )

    def _changed_settings(self) -> str:
        """Those that are not the default, in words."""
        given = {**asdict(self._options.fusion), **asdict(self._options.stream)}
        usual = {**asdict(type(self._options.fusion)()), **asdict(type(self._options.stream)())}
        changed = [f"{key} {value}" for key, value in given.items() if value != usual[key] and key != "fuser"]
        return ", ".join(changed) or "default settings"


def replay_to_folder(
    path: Path,
    bundle: Bundle,
    folder: Path,
    options: ReplayOptions,
    wanted: Wanted,
    progress: Callable[[Bag, int, int], None] | None = None,
    sinks: Sequence[Sink] = (),
    networks: Callable[[], Classifier] | None = None,
) -> Outcome:
    """Fuse a bag into a folder; everything is complete even when the user interrupts.

    Args:
        sinks: further ones that take every fused frame.
        networks: see `replay`.
    """
    with Bag(path) as bag:
        named = list(wanted.cameras)
        images = not bundle.for_scores
        how = images, options.stream.objects_topic
        wiring = name_cameras(bag.summary, named, *how) if named else find_cameras(bag.summary, *how)
        cameras = choose_input(wiring, options)  # refuses before anything is written
        if reason := why_nothing_can_be_fused(bag, cameras):
            raise BagError(f"the bag cannot be fused: {reason}")
        notes = []
        bundle = with_names(bundle, bag, cameras, options.stream.class_names)
        if bundle.for_scores and not bundle.hash:
            notes = ["scores are fused as they come, uncalibrated; unknown objects are not told"]
        heard = None if progress is None else _with_bag(progress, bag)
        shown = [camera.name for camera in cameras]
        rate = _frame_rate(bag, wiring.cameras)
        with OutputFolder(folder, bundle, options, wanted, path, shown, rate) as outputs:
            every = [*outputs.sinks, *sinks]
            result = replay(bag, wiring, bundle, options, every, heard, networks, outputs.carry)
            tracked = [name for name, chosen in result.chosen.items() if chosen.ids == "built-in tracker"]
            if tracked and outputs.truth is not None and outputs.truth.tracks:
                names = ", ".join(tracked)
                raise BagError(
                    f"the built-in tracker gives the ids of {names}: the truth is about other ids; give one "
                    f'with boxes ("format": "{FORMAT}")'
                )
            if not result.views and not result.interrupted:
                raise BagError(_why_nothing(bag, options, result))
        own = [f"camera {camera}: {result.chosen[camera]}" for camera in tracked]
        return outputs.finish(result, (*notes, *bag.notes, *wiring.missing, *own))


def _frame_rate(bag: Bag, cameras: Sequence[CameraTopics]) -> float:
    """Images per second of the camera that sends most, for the video."""
    counts = {topic.name: topic.count for topic in bag.summary.topics}
    most = max((counts.get(camera.image, 0) for camera in cameras), default=0)
    return min(max(most / bag.summary.duration, 1.0), 120.0) if most and bag.summary.duration > 0 else 10.0


def bundle_line(bundle: Bundle) -> str:
    """The model in a few words: which file, what it knows, its hash."""
    data = bundle.meta.dataset.get("name")
    if bundle.for_scores:
        return f"{Path(bundle.source).stem} (no networks, {bundle.hash[:12] or 'uncalibrated'})"
    return (
        f"{Path(bundle.source).stem} ({bundle.classes} classes{f' of {data}' if data else ''}, "
        f"{bundle.networks} networks, {bundle.hash[:12] or 'not saved'})"
    )


def bundle_card(bundle: Bundle) -> dict[str, object]:
    """What a reader of the report should know of the model file."""
    meta = bundle.meta
    return {
        "file": bundle.source,
        "hash": bundle.hash,
        "data set": meta.dataset or "not recorded",
        "networks": f"{meta.networks} × {meta.architecture.get('name', 'network')}",
        "classes": list(meta.class_names),
        "crops": f"{meta.input_size} px, margin {meta.crop_margin:g}",
        "Laplace prior precision": meta.prior_precision,
        "Laplace temperature": meta.posterior_temperature,
        "default fuser": meta.default_fuser,
        "fuser scalars": meta.fusers.get(meta.default_fuser, {}),
        "package": meta.package_version,
    }


def _why_nothing(bag: Bag, options: ReplayOptions, result: ReplayResult) -> str:
    """The bag has cameras and tracked boxes, and still no view came out."""
    if options.start >= bag.summary.duration:
        return f"--start {options.start:g} skips the whole bag, which lasts {bag.summary.duration:.1f} s"
    reasons = result.losses
    if not result.frames:
        reasons.append(
            "no image has the stamp of a detection; --set sync_tolerance=S pairs stamps that differ by up to "
            f"S seconds (now {options.stream.sync_tolerance:g})"
        )
    return f"nothing of the bag was fused: {'; '.join(reasons) or 'no frame lists an object'}"


def _with_bag(progress: Callable[[Bag, int, int], None], bag: Bag) -> Callable[[int, int], None]:
    return lambda time, views: progress(bag, time, views)
