"""`lla-fusion watch`: what a running fusion sees, live in the terminal or as a page."""

from __future__ import annotations

import argparse
import sys
import threading
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lla_fusion_ros.cli.options import STDOUT, add_json_option, write_json
from lla_fusion_ros.cli.words import check_file, printable
from lla_fusion_ros.types.errors import InputError

if TYPE_CHECKING:
    from lla_fusion_ros.ros.rerun_feed import RerunFeed
    from lla_fusion_ros.ros.watcher import Watcher
    from lla_fusion_ros.watch.scene import Scene

NAME = "watch"
EXTRA = "bags"
HELP = "show what a running fusion sees, live in the terminal or as a page"
EXAMPLE = """\
lla-fusion watch
lla-fusion watch --web
lla-fusion watch --seconds 3 --json
lla-fusion watch --rerun drive.rrd
lla-fusion watch --web --host 0.0.0.0 --port 8700"""

_VIEWER = Path("-")
_LOCAL = "127.0.0.1"
_STEP = 0.2  # seconds between looks at the end


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--web", action="store_true", help="serve one page on this computer")
    parser.add_argument("--port", type=int, default=8700, help="of the page, 0 for a free one (%(default)d)")
    parser.add_argument(
        "--host",
        default=_LOCAL,
        help="address to serve at (%(default)s); 0.0.0.0 shows images and objects to everybody who reaches "
        "this computer",
    )
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    parser.add_argument(
        "--rerun",
        nargs="?",
        const=_VIEWER,
        type=Path,
        metavar="FILE.rrd",
        help="also record for the viewer Rerun, with the cameras' images; without FILE the viewer opens",
    )
    parser.add_argument("--seconds", type=float, help="stop after so long")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    if args.seconds is not None and not args.seconds > 0:
        raise InputError(f"--seconds {args.seconds:g}: it must be above 0")
    if not args.web and (args.host != _LOCAL or args.open):
        raise InputError("--host and --open are about the page: add --web")
    from lla_fusion_ros.ros.watcher import Watcher
    from lla_fusion_ros.watch.scene import Scene

    scene = Scene()
    end = time.monotonic() + args.seconds if args.seconds else float("inf")
    try:
        with _feed(args.rerun, scene) as feed, Watcher(scene, feed) as watcher:
            if args.web:
                _serve(args, scene, watcher, end)
            elif args.json == STDOUT:
                _wait(end)
            elif sys.stdin.isatty() and sys.stdout.isatty():
                from lla_fusion_ros.cli.watch_screen import show

                show(scene, end)
            else:
                _lines(scene, end)
    except KeyboardInterrupt:
        pass  # how one leaves
    write_json(scene.snapshot(), args.json)  # what was seen last
    return 0


@contextmanager
def _feed(file: Path | None, scene: Scene) -> Iterator[RerunFeed | None]:
    """Of `--rerun`."""
    if file is None:
        yield None
        return
    if file != _VIEWER:
        check_file("--rerun", file)
        if file.exists():
            raise InputError(f"'{file}' exists already: give another place")
    from lla_fusion_ros.ros.rerun_feed import RerunFeed
    from lla_fusion_ros.watch.rerun_log import RerunLog

    with RerunLog(None if file == _VIEWER else file, "lla-fusion watch") as log:
        feed = RerunFeed(log, scene)
        with suppress(KeyboardInterrupt):  # how one leaves: what was recorded stays
            yield feed


def _serve(args: argparse.Namespace, scene: Scene, watcher: Watcher, end: float) -> None:
    from lla_fusion_ros.watch.page_server import PageServer

    with PageServer(scene, watcher.look_at, args.host, args.port) as server:
        threading.Thread(target=server.serve_forever, name="page", daemon=True).start()
        print(f"watching at {server.address}, Ctrl-C ends it", file=sys.stderr, flush=True)
        if args.host != _LOCAL:
            print("note: everybody who reaches this address sees images and objects", file=sys.stderr)
        if args.open:
            webbrowser.open(server.address)
        try:
            _wait(end)
        finally:
            server.closing = True
            server.shutdown()


def _wait(end: float) -> None:
    while time.monotonic() < end:
        time.sleep(_STEP)


def _lines(scene: Scene, end: float) -> None:
    """Where there is no terminal: a line a second."""
    from lla_fusion_ros.watch.scene import IN_VIEW

    while (now := time.monotonic()) < end:
        time.sleep(min(1.0, end - now))
        now = time.monotonic()
        seen = [each for each in scene.objects() if now - each.heard < IN_VIEW]
        warned = "; ".join(f"{each.id}: {each.reasons}" for each in seen if each.needs_a_look)
        print(printable(f"{len(seen)} objects in view, {scene.messages} frames{'; ' * bool(warned)}{warned}"))
        sys.stdout.flush()
