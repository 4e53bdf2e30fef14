"""`lla-fusion make-bag`: tracks of a data set, or a drive through the sign world, as a bag with its truth."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lla_fusion_ros.cli.options import (
    STDOUT,
    add_data_arguments,
    add_json_option,
    options_of,
    tell_skipped,
    write_json,
)
from lla_fusion_ros.cli.words import check_folder, numbers, shares
from lla_fusion_ros.types.errors import InputError

if TYPE_CHECKING:
    from lla_fusion_ros.cli.progress import BagProgress
    from lla_fusion_ros.lab.makebag.write import MadeBag, SceneFrame
    from lla_fusion_ros.signworld.geometry import Rig
    from lla_fusion_ros.types.track_set import TrackSet

    Scenes = tuple[Iterable[SceneFrame], int, str, tuple[str, ...], Rig | None]

NAME = "make-bag"
EXTRA = "bags"
HELP = "write tracks of a data set as a bag with camera frames, detections and a truth file"
EXAMPLE = """\
lla-fusion make-bag --drive --out drive --duration 20 --seed 3
lla-fusion make-bag --dataset gtsrb --root data/GTSRB --out signs --tracks 60
lla-fusion make-bag --dataset belgiumtsc --root data/BelgiumTSC --cameras 3 --out van
lla-fusion replay signs --bundle models/gtsrb.safetensors --truth signs.truth.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, required=True, help="bag folder to write; OUT.truth.json beside it"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace a bag of that name")
    parser.add_argument(
        "--encoding",
        choices=("png", "jpeg", "raw"),
        default="png",
        help="of the images (default: png, lossless)",
    )
    parser.add_argument(
        "--rate", type=float, default=10.0, help="frames per second of each camera (%(default)s)"
    )
    add_json_option(parser)
    drive = parser.add_argument_group("a drive through the sign world")
    drive.add_argument("--drive", action="store_true", help="render a drive instead of pasting a data set")
    drive.add_argument("--duration", type=float, default=20.0, help="seconds (%(default)s)")
    drive.add_argument("--seed", type=int, default=0, help="another seed, another road (%(default)s)")
    parser.add_argument(
        "--flicker",
        type=float,
        metavar="SHARE",
        help="the detections tell a class and its score, wrong in this share of the boxes",
    )
    drive.add_argument(
        "--rig", choices=("two", "three"), default="two", help="cameras; three overlap in part (%(default)s)"
    )
    drive.add_argument(
        "--row",
        nargs="?",
        const="0,1e4",
        metavar="FROM,TO",
        help="a row of equal signs, hard to tell apart: from and to these seconds; alone: all the way",
    )
    drive.add_argument("--without-ids", action="store_true", help="boxes as of a detector without a tracker")
    data = parser.add_argument_group("a data set")
    add_data_arguments(data, required=False)
    data.add_argument(
        "--part",
        choices=("all", "train", "validation", "test"),
        default="all",
        help="which tracks; test also holds the unknown objects (%(default)s)",
    )
    data.add_argument(
        "--holdout", default="", metavar="CLASSES", help="classes left out, for example 6,12,13"
    )
    data.add_argument("--fractions", default="0.7,0.15,0.15", help="of the split by track (%(default)s)")
    data.add_argument("--split-seed", type=int, default=0, help="of the split by track (%(default)s)")
    data.add_argument(
        "--tracks", type=int, default=0, help="at most so many, evenly picked; 0: all (%(default)s)"
    )
    data.add_argument(
        "--cameras", type=int, default=1, help="how many cameras share the images (%(default)s)"
    )
    data.add_argument("--objects", type=int, default=6, help="tracks in view at a time (%(default)s)")


def run(args: argparse.Namespace) -> int:
    from lla_fusion_ros.cli.progress import BagProgress
    from lla_fusion_ros.lab.makebag.write import check_place, flickering, make_bag

    if bool(args.dataset) == args.drive:
        raise InputError("give either --drive or --dataset NAME --root FOLDER")
    check_folder("--out", args.out.parent)
    check_place(args.out, args.overwrite)
    frames, total, name, class_names, rig = _drive(args) if args.drive else _dataset(args)
    if args.flicker is not None:
        if not 0 <= args.flicker <= 1:
            raise InputError(f"--flicker {args.flicker:g} is no share; give 0 to 1")
        frames = flickering(frames, class_names, args.flicker, args.seed)
    with BagProgress("writing") as progress:
        made = make_bag(
            _counted(frames, total, progress),
            args.out,
            name,
            class_names,
            args.encoding,
            args.overwrite,
            with_ids=not args.without_ids,
            rig=rig,
        )
    write_json({**asdict(made), "bag": str(made.bag), "truth": str(made.truth)}, args.json)
    if args.json != STDOUT:
        _print(made, name, args.without_ids)
    return 0


def _drive(args: argparse.Namespace) -> Scenes:
    from lla_fusion_ros.lab.makebag.write import drive_frames
    from lla_fusion_ros.signworld import CLASS_NAMES, Drive, DriveSettings
    from lla_fusion_ros.signworld.drive_settings import RIGS
    from lla_fusion_ros.signworld.geometry import rig_of

    settings = DriveSettings(seed=args.seed, duration=args.duration, rate=args.rate, cameras=RIGS[args.rig])
    if args.row:
        settings = replace(settings, row=_stretch(args.row, args.duration))
    drive = Drive(settings)
    return drive_frames(drive), len(drive), "signworld", tuple(CLASS_NAMES), rig_of(drive)


def _stretch(text: str, duration: float) -> tuple[float, float]:
    """Seconds; signs are seen some seconds before the vehicle passes them."""
    try:
        begin, end = map(float, text.split(","))
    except ValueError:
        raise InputError(f"--row {text}: expected FROM,TO in seconds, as 5,12") from None
    return begin, min(end, duration + 5.0)


def _dataset(args: argparse.Namespace) -> Scenes:
    from lla_fusion_ros.lab.datasets import load_dataset
    from lla_fusion_ros.lab.makebag.paste import PasteSettings, paste_frames

    whole = load_dataset(args.dataset, args.root, **options_of(args))
    tell_skipped(whole)
    trackset = _part(whole, args)
    if args.tracks and args.tracks < len(trackset.tracks):
        step = len(trackset.tracks) / args.tracks
        picked = tuple(trackset.tracks[int(index * step)] for index in range(args.tracks))
        trackset = replace(trackset, tracks=picked)
    settings = PasteSettings(args.cameras, args.objects, args.rate)
    frames = sum(len(track.frames) for track in trackset.tracks)
    total = max(1, round(frames / args.objects))
    return paste_frames(trackset, settings), total, trackset.name, trackset.class_names, None


def _part(trackset: TrackSet, args: argparse.Namespace) -> TrackSet:
    from lla_fusion_ros.lab.datasets import split_tracks

    if args.part == "all" and not args.holdout:
        return trackset
    holdout, fractions = numbers("--holdout", args.holdout), shares("--fractions", args.fractions)
    splits = split_tracks(trackset, holdout, fractions, args.split_seed)
    if args.part == "all":
        parts = [splits.train, splits.validation, splits.test, splits.outside]
    else:
        parts = [getattr(splits, args.part)] + ([splits.outside] if args.part == "test" else [])
    # The tracks with their own labels: held out is what a bundle does not know, and each bundle knows others.
    chosen = {track.id for part in parts for track in part.tracks}
    return replace(trackset, tracks=tuple(track for track in trackset.tracks if track.id in chosen))


def _counted(frames: Iterable[SceneFrame], total: int, progress: BagProgress) -> Iterator[SceneFrame]:
    views = 0
    for done, frame in enumerate(frames):
        yield frame
        views += len(frame.ids)
        progress.count(done + 1, max(total, done + 1), views)


def _print(made: MadeBag, data_set: str, without_ids: bool) -> None:
    from lla_fusion_ros.bundle.resources import model_of

    print(
        f"{made.frames} frames of {', '.join(made.cameras)}, {made.seconds:.1f} s, "
        f"{made.tracks} tracks, {made.views} views"
    )
    print(f"  {made.bag}\n  {made.truth}")
    bundle = model_of(data_set) or "YOUR_MODEL.safetensors"
    words = ["lla-fusion", "replay", str(made.bag), "--bundle", bundle]
    words += ["--truth", str(made.truth)]
    if len(made.cameras) > 1 and not without_ids:  # the ids of the bag mean the same object in every camera
        words += ["--set", "identity=global"]
    print(f"next: {shlex.join(words)}")
