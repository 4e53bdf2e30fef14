"""`lla-fusion demo`: see it work, in about a minute."""

from __future__ import annotations

import argparse
import sys
import time
import webbrowser
from importlib import import_module
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING

from lla_fusion_ros.cli.options import STDOUT, add_json_option, write_json
from lla_fusion_ros.cli.words import check_folder

if TYPE_CHECKING:
    from lla_fusion_ros.demo.run_demo import DemoResult

NAME = "demo"
EXTRA = "bags"
HELP = "render the sign world, play it through the real nodes over DDS, show and explain what comes out"
EXAMPLE = """\
lla-fusion demo
lla-fusion demo --out /tmp/demo --open"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, default=Path("demo_out"), help="folder for everything (%(default)s)"
    )
    parser.add_argument("--model", default="signworld", help="bundle: a file, or the name of one that ships")
    parser.add_argument("--seed", type=int, default=0, help="another seed, another drive (%(default)s)")
    parser.add_argument("--rate", type=float, default=1.0, help="recorded seconds per second (%(default)s)")
    parser.add_argument(
        "--with-ids",
        action="store_true",
        help="send boxes with ids that hold in both cameras; else each camera tracks its boxes, and geometry "
        "tells which tracks are one object",
    )
    parser.add_argument("--open", action="store_true", help="open the report in a browser")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    for needed in ("rclpy", "vision_msgs.msg"):
        import_module(needed)  # a machine without ROS gets its sentence before anything is rendered
    from lla_fusion_ros.bundle.resources import find_model
    from lla_fusion_ros.cli.demo_screen import DemoScreen
    from lla_fusion_ros.demo.run_demo import Demo
    from lla_fusion_ros.signworld import demo_drive

    check_folder("--out", args.out)
    began = time.monotonic()
    drive = demo_drive(args.seed)
    screen = DemoScreen(args.json == STDOUT, len(drive))
    demo = Demo(
        args.out,
        find_model(args.model),
        drive,
        args.rate,
        screen.tell,
        screen.watch,
        without_ids=not args.with_ids,
    )
    with screen:
        result = demo.run()
    seconds = time.monotonic() - began
    write_json(_as_dict(result, seconds), args.json)
    if args.json != STDOUT:
        _print(result, seconds)
    if args.open:
        webbrowser.open(result.outcome.files[0].resolve().as_uri())
    return 0


def _summary(result: DemoResult) -> str:
    from lla_fusion_ros.report.scoring import SINGLE_FRAME

    scores = result.outcome.scores
    if scores is None:
        return "nothing was fused"
    single, fused, warnings = scores.of(SINGLE_FRAME), scores.of(result.outcome.fuser), scores.warnings
    return (
        f"Single frames are {single.accuracy:.1%} right, fused {fused.accuracy:.1%}. "
        f"Found {warnings.raised} of {warnings.raised + warnings.missed} unknown objects and identity "
        f"switches, and {warnings.changes_seen} of {warnings.changes} changes of traffic lights; "
        f"false alarms on {warnings.false_alarms} of {warnings.inside} known tracks, "
        f'{warnings.cannot_tell} called "cannot tell".'
    )


def _print(result: DemoResult, seconds: float) -> None:
    out = {file.name: file for file in result.outcome.files}
    width = get_terminal_size().columns if sys.stdout.isatty() else 10_000
    same = f"to {result.agreement:.0e}" if result.agreement else "exactly"
    print(f"\n{fill(_summary(result), width)}")
    told = (
        f"{result.frames_fused} of {result.frames_sent} frames were fused live; "
        f"fusing the recorded views again offline gives {same} the same numbers "
        f"({result.agreement_frames} frames)."
    )
    print(fill(told, width))
    print(f"\nDone in {seconds:.0f} s. What to look at:")
    rows = (
        (out["report.html"], "the story of every object; open it in a browser"),
        (result.video, "what the cameras saw, with fused classes and warnings"),
        (result.recording, "what the nodes published, a bag for Foxglove and replay"),
        (out["fused.csv"], "one row per object and frame"),
        (result.made.bag, "the drive itself, with its truth beside it"),
    )
    longest = max(len(str(path)) for path, _ in rows)
    for path, meaning in rows:
        if longest + len(meaning) + 4 <= width:
            print(f"  {str(path):<{longest}}  {meaning}")
        else:
            print(f"  {path}\n{fill(meaning, width, initial_indent='    ', subsequent_indent='    ')}")


def _as_dict(result: DemoResult, seconds: float) -> dict[str, object]:
    scores = result.outcome.scores
    return {
        "summary": _summary(result),
        "seconds": seconds,
        "frames_sent": result.frames_sent,
        "frames_fused": result.frames_fused,
        "agreement": result.agreement,
        "scores": None if scores is None else scores.as_dict(),
        "files": [
            str(file) for file in (*result.outcome.files, result.video, result.recording, result.made.bag)
        ],
    }
