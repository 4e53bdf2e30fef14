"""`lla-fusion demo`: see it work, in about a minute."""

from __future__ import annotations

import argparse
import time
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lla_fusion_ros.cli.json_option import STDOUT, add_json_option, write_json

if TYPE_CHECKING:
    from lla_fusion_ros.demo.live import LiveState
    from lla_fusion_ros.demo.run_demo import DemoResult

NAME = "demo"
HELP = "render the sign world, play it through the real nodes over DDS, show and explain what comes out"
EXAMPLE = """\
lla-fusion demo
lla-fusion demo --out /tmp/demo --open"""
_BAR = 18  # characters
_REASONS = {
    "out_of_distribution": "unlike anything trained on",
    "identity_switch": "identity switch",
    "camera_disagreement": "cameras disagree",
    "cannot_tell": "cannot tell: bad pictures",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, default=Path("demo_out"), help="folder for everything (%(default)s)"
    )
    parser.add_argument("--model", default="signworld", help="bundle: a file, or the name of one that ships")
    parser.add_argument("--seed", type=int, default=0, help="another seed, another drive (%(default)s)")
    parser.add_argument("--rate", type=float, default=1.0, help="recorded seconds per second (%(default)s)")
    parser.add_argument("--open", action="store_true", help="open the report in a browser")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    import rclpy  # noqa: F401 - a machine without ROS gets its sentence before anything is rendered
    import vision_msgs.msg  # noqa: F401

    from lla_fusion_ros.bundle.resources import find_model
    from lla_fusion_ros.cli.output_paths import check_folder
    from lla_fusion_ros.demo.run_demo import Demo
    from lla_fusion_ros.signworld import demo_drive

    check_folder("--out", args.out)
    began = time.monotonic()
    screen = _Screen(quiet=args.json == STDOUT)
    demo = Demo(args.out, find_model(args.model), demo_drive(args.seed), args.rate, screen.tell, screen.watch)
    with screen:
        result = demo.run()
    seconds = time.monotonic() - began
    write_json(_as_dict(result, seconds), args.json)
    if args.json != STDOUT:
        _print(result, seconds)
    if args.open:
        webbrowser.open(result.outcome.files[0].resolve().as_uri())
    return 0


class _Screen:
    """A live table on a terminal; plain lines elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self._console = Console(stderr=quiet)
        self._live = Live(console=self._console, refresh_per_second=8, transient=True)
        self._plain_at = -5.0

    def __enter__(self) -> _Screen:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def tell(self, text: str) -> None:
        self._console.print(f"[bold cyan]·[/] {text}", highlight=False)

    def watch(self, state: LiveState) -> None:
        if self._console.is_terminal:
            self._live.update(_table(state))
        elif state.seconds >= self._plain_at + 5:
            self._plain_at = state.seconds
            self._console.print(
                f"  {state.seconds:4.0f} s  {state.fused_views} views fused, "
                f"{len(state.in_view())} tracks in view, {len(state.warned)} warned of so far"
            )


def _table(state: LiveState) -> Group:
    from lla_fusion_ros.signworld import CLASS_NAMES

    tracks = state.in_view()
    cameras = sorted({camera for track in tracks for camera in track.single})
    table = Table(expand=False, header_style="bold")
    for column in ("track", *cameras, "fused", "", "entropy", "warning"):
        table.add_column(column)
    for track in tracks:
        label, probability = track.fused
        colour = "red" if track.warning else ("green" if probability > 0.8 else "yellow")
        bar = "█" * round(probability * _BAR)
        singles = []
        for camera in cameras:
            seen = track.single.get(camera)
            wrong = seen is not None and seen[0] != label
            singles.append(
                Text(CLASS_NAMES[seen[0]] if seen else "–", style="bright_red" if wrong else "dim")
            )
        reasons = ", ".join(_REASONS.get(reason, reason) for reason in track.warning.split())
        table.add_row(
            track.id,
            *singles,
            Text(CLASS_NAMES[label], style="bold"),
            Text(f"{bar:<{_BAR}} {probability:4.0%}", style=colour),
            f"{track.entropy:.2f}",
            Text(reasons, style="bold red"),
        )
    head = f"{state.seconds:5.1f} s   {state.fused_views} views fused   {len(state.warned)} tracks warned of"
    return Group(Text(head, style="bold"), table)


def _summary(result: DemoResult) -> str:
    from lla_fusion_ros.report.scoring import SINGLE_FRAME

    scores = result.outcome.scores
    if scores is None:
        return "nothing was fused"
    single, fused, warnings = scores.of(SINGLE_FRAME), scores.of(result.outcome.fuser), scores.warnings
    return (
        f"single frame {single.accuracy:.1%} → fused {fused.accuracy:.1%} right, "
        f"warnings raised {warnings.raised}, missed {warnings.missed}, "
        f"false alarms on {warnings.false_alarms} of {warnings.inside} tracks"
    )


def _print(result: DemoResult, seconds: float) -> None:
    out = {file.name: file for file in result.outcome.files}
    print(f"\n{_summary(result)}")
    print(
        f"{result.frames_fused} of {result.frames_sent} frames fused live; fusing the recorded views again "
        f"offline gives the same numbers to {result.agreement:.0e} ({result.agreement_frames} frames)"
    )
    print(f"\nDone in {seconds:.0f} s. What to look at:")
    rows = (
        (out["report.html"], "the story of every track; open it in a browser"),
        (result.video, "what the cameras saw, with fused classes and warnings"),
        (result.recording, "what the nodes published: ros2 bag info, Foxglove, lla-fusion replay"),
        (out["fused.csv"], "one row per track and frame"),
        (result.made.bag, "the drive itself, with its truth beside it"),
    )
    for path, meaning in rows:
        print(f"  {str(path):<28} {meaning}")


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
