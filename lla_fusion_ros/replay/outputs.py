"""A replay with everything it leaves behind: fused bag, table, report and scores in one folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import Wiring, find_cameras, name_cameras
from lla_fusion_ros.bags.writer import BagWriter
from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.errors import BagError
from lla_fusion_ros.replay.run import ReplayOptions, ReplayResult, choose_input, replay
from lla_fusion_ros.replay.scoring import ReplayScores, ScoreSink
from lla_fusion_ros.replay.sinks import BagSink, CsvSink, Sink
from lla_fusion_ros.replay.truth import Truth, read_truth
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


def replay_to_folder(
    path: Path,
    bundle: Bundle,
    folder: Path,
    options: ReplayOptions,
    wanted: Wanted,
    progress: Callable[[Bag, int, int], None] | None = None,
) -> Outcome:
    """Fuse a bag into a folder; everything is complete even when the user interrupts."""
    fuser = options.fusion.fuser or bundle.meta.default_fuser
    truth = None if wanted.truth is None else read_truth(wanted.truth)
    with ExitStack() as stack:
        bag = stack.enter_context(Bag(path))
        wiring = (
            name_cameras(bag.summary, list(wanted.cameras)) if wanted.cameras else find_cameras(bag.summary)
        )
        choose_input(wiring, options.use)  # before anything is written
        folder.mkdir(parents=True, exist_ok=True)
        files: list[Path] = []
        sinks: list[Sink] = []
        if wanted.bag:
            files.append(folder / FUSED_BAG)
            about = {"bundle": bundle.hash, "fuser": fuser, "source": path.name}
            writer = stack.enter_context(BagWriter(files[-1], about, wanted.overwrite))
            sinks.append(BagSink(writer, bundle, wanted.views))
        if wanted.table:
            files.append(folder / TABLE)
            _refuse_existing(files[-1], wanted.overwrite)
            sinks.append(stack.enter_context(CsvSink(files[-1], bundle.class_names)))
        timelines = TimelineSink(truth, options.fusion.track_id_scope)
        if wanted.report:
            _refuse_existing(folder / REPORT, wanted.overwrite)
            sinks.append(timelines)
        scorer = None
        if truth is not None:
            scorer = ScoreSink(truth, bundle, options.fusion, wanted.compare)
            sinks.append(scorer)
        heard = None if progress is None else _with_bag(progress, bag)
        result = replay(bag, wiring, bundle, options, sinks, heard)
        notes = (*bag.notes, *wiring.missing, *_losses(result))
    scores = scorer.scores() if scorer is not None and result.views else None
    if scores is not None:
        files.append(folder / SCORES)
        files[-1].write_text(json.dumps(scores.as_dict(), indent=1) + "\n")
    if wanted.report:
        files.insert(0, folder / REPORT)
        report = _report(path, bundle, options, wanted, timelines, scores, result, notes, wiring, truth)
        write_report(report, files[0])
    return Outcome(result, scores, notes, tuple(files), fuser)


def _report(
    path: Path,
    bundle: Bundle,
    options: ReplayOptions,
    wanted: Wanted,
    timelines: TimelineSink,
    scores: ReplayScores | None,
    result: ReplayResult,
    notes: Sequence[str],
    wiring: Wiring,
    truth: Truth | None,
) -> ReportInput:
    tracks = len(timelines.tracks) + timelines.forgotten
    warned = sum(bool(track.reasons) for track in timelines.tracks.values())
    facts = {
        "tracks": f"{tracks}",
        "tracks warned of": f"{warned}",
        "views of " + ", ".join(result.cameras): f"{result.views}",
        "recorded": f"{result.recorded:.1f} s",
    }
    if result.seconds > 0 and result.recorded > 0:
        facts["faster than real time"] = f"{result.recorded / result.seconds:.1f}×"
    return ReportInput(
        title=wanted.title or f"Fused classes of {path.name}",
        subtitle=f"fused by {options.fusion.fuser or bundle.meta.default_fuser} from {result.used}",
        class_names=bundle.class_names,
        timelines=timelines,
        fuser=options.fusion.fuser or bundle.meta.default_fuser,
        facts=facts,
        settings={
            "bag": str(path),
            "truth": truth.data_set if truth is not None else "not given",
            **asdict(options.fusion),
            **asdict(options.stream),
        },
        bundle=bundle_card(bundle),
        scores=scores,
        notes=notes,
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


def _refuse_existing(path: Path, overwrite: bool) -> None:
    if path.exists() and not overwrite:
        raise BagError(f"'{path}' exists already: give another place or --overwrite")


def _with_bag(progress: Callable[[Bag, int, int], None], bag: Bag) -> Callable[[int, int], None]:
    return lambda time, views: progress(bag, time, views)
