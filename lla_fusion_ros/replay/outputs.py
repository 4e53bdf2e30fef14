"""A replay with everything it leaves behind: fused bag, table, report and scores in one folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import find_cameras, name_cameras
from lla_fusion_ros.bags.writer import BagWriter
from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.errors import BagError
from lla_fusion_ros.replay.run import ReplayOptions, ReplayResult, choose_input, replay
from lla_fusion_ros.replay.scoring import ReplayScores, ScoreSink
from lla_fusion_ros.replay.sinks import BagSink, CsvSink, Sink
from lla_fusion_ros.replay.truth import read_truth
from lla_fusion_ros.report.page import ReportInput, write_report
from lla_fusion_ros.report.timeline import TimelineSink

FUSED_BAG, TABLE, REPORT, SCORES = "fused", "fused.csv", "report.html", "scores.json"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to write.

    Attributes:
        views: also each camera's views and embeddings, so that the result can be fused again.
        compare: further fusers to score where a truth is given.
        cameras: NAME=IMAGE_TOPIC,DETECTIONS_TOPIC; empty: find them.
    """

    bag: bool = True
    views: bool = True
    table: bool = True
    report: bool = True
    truth: Path | None = None
    compare: Sequence[str] = ()
    cameras: Sequence[str] = ()
    overwrite: bool = False
    title: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done; `files` are those written, in the order a reader would want them."""

    result: ReplayResult
    scores: ReplayScores | None
    notes: tuple[str, ...]
    files: tuple[Path, ...]
    fuser: str


class OutputFolder:
    """The sinks that write a run into a folder; a `with` statement keeps them open, `finish` writes the rest.

    Args:
        source: what was fused, as the report calls it.
    """

    def __init__(
        self, folder: Path, bundle: Bundle, options: ReplayOptions, wanted: Wanted, source: Path
    ) -> None:
        self._folder, self._bundle, self._options, self._wanted = folder, bundle, options, wanted
        self._source = source
        self._stack = ExitStack()
        self._files: list[Path] = []
        self.fuser = options.fusion.fuser or bundle.meta.default_fuser
        self.truth = None if wanted.truth is None else read_truth(wanted.truth)
        self.timelines = TimelineSink(self.truth, options.fusion.track_id_scope)
        # whatever is wrong with fusers or truth is said before anything is written
        bundle.fuser(self.fuser, options.fusion.window)
        self._scorer = (
            None
            if self.truth is None
            else ScoreSink(self.truth, self._bundle, self._options.fusion, wanted.compare)
        )
        self.sinks: list[Sink] = []

    def __enter__(self) -> OutputFolder:
        try:
            self._open()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _open(self) -> None:
        wanted, folder = self._wanted, self._folder
        folder.mkdir(parents=True, exist_ok=True)
        for name, is_wanted in ((TABLE, wanted.table), (REPORT, wanted.report)):
            if is_wanted and (folder / name).exists() and not wanted.overwrite:
                raise BagError(f"'{folder / name}' exists already: give another place or --overwrite")
        if wanted.bag:
            self._files.append(folder / FUSED_BAG)
            about = {"bundle": self._bundle.hash, "fuser": self.fuser, "source": self._source.name}
            writer = self._stack.enter_context(BagWriter(self._files[-1], about, wanted.overwrite))
            self.sinks.append(BagSink(writer, self._bundle, wanted.views))
        if wanted.table:
            self._files.append(folder / TABLE)
            self.sinks.append(self._stack.enter_context(CsvSink(self._files[-1], self._bundle.class_names)))
        if wanted.report:
            self.sinks.append(self.timelines)
        if self._scorer is not None:
            self.sinks.append(self._scorer)

    def finish(self, result: ReplayResult, notes: Sequence[str]) -> Outcome:
        """Scores and report; call it when the `with` block is over."""
        every = (*notes, *_losses(result))
        scores = self._scorer.scores() if self._scorer is not None and result.views else None
        if scores is not None:
            self._files.append(self._folder / SCORES)
            self._files[-1].write_text(json.dumps(scores.as_dict(), indent=1) + "\n")
        if self._wanted.report:
            self._files.insert(0, self._folder / REPORT)
            write_report(self._report(result, scores, every), self._files[0])
        return Outcome(result, scores, every, tuple(self._files), self.fuser)

    def _report(self, result: ReplayResult, scores: ReplayScores | None, notes: Sequence[str]) -> ReportInput:
        tracks = len(self.timelines.tracks) + self.timelines.forgotten
        warned = sum(bool(track.reasons) for track in self.timelines.tracks.values())
        facts = {
            "tracks": f"{tracks}",
            "tracks warned of": f"{warned}",
            "views of " + ", ".join(result.cameras): f"{result.views}",
            "recorded": f"{result.recorded:.1f} s",
        }
        if result.used == "images" and result.seconds > 0 and result.recorded > 0:
            facts["faster than real time"] = f"{result.recorded / result.seconds:.1f}×"
        return ReportInput(
            title=self._wanted.title or f"Fused classes of {self._source.name}",
            subtitle=f"fused by {self.fuser} from {result.used}",
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


def replay_to_folder(
    path: Path,
    bundle: Bundle,
    folder: Path,
    options: ReplayOptions,
    wanted: Wanted,
    progress: Callable[[Bag, int, int], None] | None = None,
) -> Outcome:
    """Fuse a bag into a folder; everything is complete even when the user interrupts."""
    with Bag(path) as bag:
        named = list(wanted.cameras)
        wiring = name_cameras(bag.summary, named) if named else find_cameras(bag.summary)
        choose_input(wiring, options.use)  # refuses before anything is written
        heard = None if progress is None else _with_bag(progress, bag)
        with OutputFolder(folder, bundle, options, wanted, path) as outputs:
            result = replay(bag, wiring, bundle, options, outputs.sinks, heard)
        return outputs.finish(result, (*bag.notes, *wiring.missing))


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


def _losses(result: ReplayResult) -> list[str]:
    lost = {
        name.removeprefix("dropped_").replace("_", " "): count
        for name, count in sorted(result.counts.items())
        if name.startswith("dropped_") and count
    }
    notes = [f"not fused: {', '.join(f'{count} {reason}' for reason, count in lost.items())}"] if lost else []
    if result.interrupted:
        notes.append("interrupted: everything up to then is here")
    return notes


def _with_bag(progress: Callable[[Bag, int, int], None], bag: Bag) -> Callable[[int, int], None]:
    return lambda time, views: progress(bag, time, views)
