"""`lla-fusion replay`: fuse a bag offline."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lla_fusion_ros.cli.options import (
    STDOUT,
    add_json_option,
    add_setting_options,
    settings_from,
    wiring_from,
    write_json,
)
from lla_fusion_ros.cli.replay_fleet import add_fleet_arguments, default_out, is_fleet, run_fleet_replay
from lla_fusion_ros.cli.words import check_file, check_folder, printable
from lla_fusion_ros.report.comparison import COMPARED
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.settings import ENGINES, PRECISIONS

if TYPE_CHECKING:
    from lla_fusion_ros.bundle import Bundle
    from lla_fusion_ros.replay.output_folder import Outcome
    from lla_fusion_ros.replay.sinks import Sink

LARGEST_OFFSET = 10.0  # seconds, as for the nodes
NAME = "replay"
EXTRA = "bags"
HELP = "fuse one bag or thousands offline, as fast as the machine can: bag in, bag, table and report out"
EXAMPLE = """\
lla-fusion replay drive/ --bundle models/signworld.safetensors
lla-fusion replay drive/ --truth drive.truth.json --compare all
lla-fusion replay drive_fused/fused --fuser pool --set idle_timeout=2  # recorded views: no network needed
lla-fusion replay street.mcap --camera front=/cam/image_raw,/yolo/tracking
lla-fusion replay drive/ --rerun drive.rrd  # then: rerun drive.rrd
lla-fusion replay recordings/ --out fleet --truth recordings/ --export-hard 200 to_label/  # many bags"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "bag",
        nargs="+",
        metavar="BAG",
        help="bag folder, .mcap or .db3 file; compressed, split, cut off: all fine. Or many: several, "
        "folders of bags, globs, or a .txt file with a path per line",
    )
    parser.add_argument(
        "--bundle",
        type=Path,
        help="model file, or the name of one that ships (signworld); scores: the detector's own are fused",
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="folder for the results (default: BAG_fused, beside the bag; of several, fleet_fused here)",
    )
    parser.add_argument(
        "--camera",
        action="append",
        default=[],
        metavar="NAME=IMAGE,DETECTIONS",
        help="name a camera's topics",
    )
    parser.add_argument(
        "--time-offset",
        action="append",
        default=[],
        metavar="NAME=S",
        help="add S seconds to the stamps of a camera's detections before they are paired with images",
    )
    parser.add_argument(
        "--use",
        choices=("auto", "images", "views"),
        default="auto",
        help="fuse the bag's images or its recorded views (default: images if it has them)",
    )
    parser.add_argument("--start", type=float, default=0.0, metavar="S", help="skip the first S seconds")
    parser.add_argument(
        "--truth",
        type=Path,
        metavar="FILE",
        help="truth file, as of `make-bag`: print scores. A box shows the true one that it overlaps most, "
        "one to one, by an intersection over union of at least .5; stamps without a truth are not judged",
    )
    parser.add_argument(
        "--unknown-classes",
        action="store_true",
        help="accept a truth file most of whose classes the model does not know; they are unknown objects",
    )
    parser.add_argument(
        "--compare",
        metavar="FUSERS",
        help="with --truth: fusers to score beside the one in use, names or all "
        f"({','.join(COMPARED)}; of several bags: none)",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:0")
    parser.add_argument(
        "--precision", choices=PRECISIONS, default="auto", help="of the networks; auto is int8 on an x86 CPU"
    )
    parser.add_argument("--engine", choices=ENGINES, default="auto", help="where the networks run")
    add_setting_options(parser)
    for part, meaning in (
        ("bag", "the fused bag"),
        ("views", "views and embeddings in the fused bag"),
        ("csv", "the table"),
        ("report", "the HTML report"),
    ):
        parser.add_argument(f"--no-{part}", action="store_true", help=f"do not write {meaning}")
    parser.add_argument(
        "--statements",
        type=float,
        nargs="?",
        const=0.95,
        default=0.0,
        metavar="COVERAGE",
        help="also write /track_status and /class_sets into the fused bag, what a planner may rely on: the "
        "sets hold the true class of this share of objects (0.95)",
    )
    parser.add_argument(
        "--costs", default="", metavar="FILE", help="costs of decisions: also write /decisions, and the above"
    )
    parser.add_argument("--video", action="store_true", help="also write an annotated video, video.mp4")
    parser.add_argument(
        "--rerun", type=Path, metavar="FILE.rrd", help="also write a recording for the viewer Rerun"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace earlier results in --out")
    add_json_option(parser)
    add_fleet_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from lla_fusion_ros.bundle import load_bundle
    from lla_fusion_ros.cli.progress import BagProgress
    from lla_fusion_ros.replay.output_folder import Wanted, bundle_line, replay_to_folder
    from lla_fusion_ros.replay.replay import ReplayOptions
    from lla_fusion_ros.stream.stream_settings import CameraWiring

    fusion, stream = settings_from(args)
    bundle = load_bundle(args.bundle or "signworld")
    if args.json != STDOUT:
        default = "" if args.bundle else ", the default: choose with --bundle"
        print(f"model {printable(bundle_line(bundle))}{default}", flush=True)
    wiring = wiring_from(args)
    for camera, offset in _offsets(args.time_offset).items():
        wiring[camera] = replace(wiring.get(camera, CameraWiring()), time_offset=offset)
    options = ReplayOptions(
        fusion, stream, args.use, args.start, args.device, args.precision, wiring, args.engine
    )
    many = is_fleet(args)
    wanted = Wanted(
        bag=not args.no_bag,
        views=not args.no_views,
        coverage=args.statements,
        costs=args.costs,
        table=not args.no_csv,
        report=not args.no_report,
        video=args.video,
        truth=args.truth,
        compare=_fusers(args.compare, bundle, many),
        cameras=args.camera,
        overwrite=args.overwrite,
        tracks=args.json is not None,
        unknown_classes=args.unknown_classes,
    )
    bag = Path(args.bag[0])
    folder = args.out or (default_out(args.bag, _beside) if many else _beside(bag))
    check_folder("--out", folder)
    if (
        args.device != "auto" and bundle.for_torch
    ):  # a device that is not there is refused before earlier results are replaced
        from lla_fusion_ros.networks.torch_engine import choose_device

        choose_device(args.device)
    if many:
        if args.rerun is not None:
            raise InputError("--rerun is about one bag: replay that one by itself")
        return run_fleet_replay(args, bundle, options, wanted, folder)
    with _rerun(args, bag) as sinks, BagProgress("fusing") as progress:
        outcome = replay_to_folder(bag, bundle, folder, options, wanted, progress.report, sinks)
    if args.json != STDOUT:
        _print(outcome, args.rerun)
    if args.json is not None:
        write_json(_as_dict(bag, bundle, outcome), args.json)
    return 130 if outcome.result.interrupted else 0


@contextmanager
def _rerun(args: argparse.Namespace, bag: Path) -> Iterator[list[Sink]]:
    """The sink of `--rerun`."""
    if args.rerun is None:
        yield []
        return
    check_file("--rerun", args.rerun)
    if args.rerun.exists() and not args.overwrite:
        raise InputError(f"'{args.rerun}' exists already: give another place or --overwrite")
    from lla_fusion_ros.watch.rerun_log import RerunLog

    with RerunLog(args.rerun, bag.name) as log:
        yield [log]


def _beside(bag: Path) -> Path:
    """BAG_fused in the bag's own folder, wherever the user is."""
    from lla_fusion_ros.bags.files import COMPRESSED_SUFFIXES, STORAGE_SUFFIXES

    place = Path(os.path.abspath(bag))  # not resolved: what a link points to may be anywhere
    name = place.name
    for ending in (*COMPRESSED_SUFFIXES, *STORAGE_SUFFIXES):
        name = name.removesuffix(ending)
    return place.with_name(f"{name}_fused")


def _fusers(text: str | None, bundle: Bundle, many: bool) -> list[str]:
    from lla_fusion_ros.bundle.bundle import PMF_FUSERS
    from lla_fusion_ros.fusion import fusers

    if text is None:
        return [] if many else list(COMPARED)
    if text == "all":
        return list(PMF_FUSERS) if bundle.for_scores else list(fusers())
    return [name for name in text.split(",") if name]


def _offsets(words: list[str]) -> dict[str, float]:
    offsets = {}
    for word in words:
        camera, _, seconds = word.rpartition("=")
        try:
            offsets[camera] = float(seconds)
        except ValueError:
            camera = ""
        if not camera or not abs(offsets[camera]) <= LARGEST_OFFSET:
            raise InputError(
                f"--time-offset {word}: expected NAME=S, the name of a camera and at most "
                f"{LARGEST_OFFSET:g} seconds, for example left=-0.2"
            )
    return offsets


def _as_dict(bag: Path, bundle: Bundle, outcome: Outcome) -> dict[str, object]:
    meta = bundle.meta
    return {
        "bag": str(bag),
        "bundle": {
            "file": bundle.source,
            "hash": bundle.hash,
            "data_set": meta.dataset.get("name"),
            "networks": bundle.networks,
            "class_names": list(bundle.class_names),
        },
        # not asdict, which takes a Counter apart
        **{each.name: getattr(outcome.result, each.name) for each in fields(outcome.result)},
        "chosen": {camera: asdict(chosen) for camera, chosen in outcome.result.chosen.items()},
        "fuser": outcome.fuser,
        "views_per_second": outcome.result.views / max(outcome.result.seconds, 1e-9),
        "scores": None if outcome.scores is None else outcome.scores.as_dict(),
        "tracks": outcome.tracks.tracks(),
        "warnings": outcome.tracks.warnings(),
        "notes": list(outcome.notes),
        "files": [str(file) for file in outcome.files],
    }


def _print(outcome: Outcome, rerun: Path | None) -> None:
    result = outcome.result
    speed = result.recorded / result.seconds if result.seconds else 0.0
    print(
        f"{result.views} views in {result.frames} frames of {printable(', '.join(result.cameras))}, "
        f"{result.recorded:.1f} s recorded, fused by {outcome.fuser} in {result.seconds:.1f} s "
        f"({speed:.1f}× real time, {result.views / max(result.seconds, 1e-9):.0f} views/s)"
    )
    for note in outcome.notes:
        print(f"note: {printable(note)}")
    if outcome.scores is not None:
        from lla_fusion_ros.cli.tables import print_replay_scores

        print_replay_scores(outcome.scores, outcome.fuser)
    for file in outcome.files if rerun is None else (*outcome.files, rerun):
        print(f"  {printable(_short(file))}")


def _short(file: Path) -> str:
    """As seen from where the user is, if it lies there."""
    try:
        return str(file.relative_to(Path.cwd()))
    except ValueError:
        return str(file)
