"""`lla-fusion VERB …`: finds the verb, reads its arguments, runs it, and turns trouble into one sentence.

A verb is a file in this folder with, at its top level,

    NAME = "info"                                   what the user types
    HELP = "tell what is in a bundle or a bag"      one line for the list of verbs
    EXAMPLE = "lla-fusion info models/x.safetensors"   shown at the end of its --help; may have several lines
    EXTRA = "bags"                                  the extra of setup.py that holds what it needs
    def add_arguments(parser: argparse.ArgumentParser) -> None
    def run(args: argparse.Namespace) -> int        the exit code

Verbs are found without importing them: `lla-fusion --help` must not wait for torch.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import sys
import textwrap
import traceback
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from lla_fusion_ros import __version__
from lla_fusion_ros.cli.options import join_json_file
from lla_fusion_ros.cli.words import printable, talk
from lla_fusion_ros.networks.plugins import import_plugins
from lla_fusion_ros.types.errors import LlaFusionError, missing_extra, unknown_name
from lla_fusion_ros.types.settings import words as names_in

PROGRAM = "lla-fusion"
EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130  # what shells report for Ctrl-C
TALK = ("-q", "--quiet", "-v", "--verbose")

ROS_MODULES = {
    "rclpy",
    "vision_msgs",
    "sensor_msgs",
    "diagnostic_msgs",
    "rosgraph_msgs",
    "std_srvs",
    "std_msgs",
}
# What a vehicle does without: the extras of setup.py, and what comes with rosbags.
EXTRA_MODULES = {
    *("backports", "compression", "lz4", "matplotlib", "onnx", "onnxruntime", "rich", "rosbags", "torch"),
}
# What some options need only: module -> extra.
OPTION_MODULES = {**dict.fromkeys(("dask", "distributed", "pyarrow"), "fleet"), "rerun": "watch"}


class Verb(NamedTuple):
    """What is known of a verb before it is imported; `extra` is what to install for it."""

    name: str
    help: str
    example: str
    module: str
    extra: str = ""


def find_verbs() -> dict[str, Verb]:
    """All verbs of the package by name, in the order of their names."""
    verbs = {}
    for path in Path(__file__).parent.glob("*.py"):
        texts = {
            target.id: statement.value.value
            for statement in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
            for target in statement.targets
            if isinstance(target, ast.Name) and isinstance(statement.value.value, str)
        }
        if name := texts.get("NAME"):
            module, extra = f"{__package__}.{path.stem}", texts.get("EXTRA", "")
            verbs[name] = Verb(name, texts["HELP"], texts["EXAMPLE"], module, extra)
    return dict(sorted(verbs.items()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code, 0 only on success."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    verbs = find_verbs()
    if not words or words[0] in ("-h", "--help"):
        print(overview(verbs))
        return 0 if words else EXIT_USAGE
    if words[0] in ("-V", "--version"):
        print(f"{PROGRAM} {__version__}")
        return 0
    early = list(takewhile(TALK.__contains__, words))  # of any verb; users put them on either side
    words = words[len(early) :]
    if not words:
        return _complain(f"{' '.join(early)} needs a verb", EXIT_USAGE)
    if words[0] not in verbs:
        return _complain(unknown_name("verb", words[0], verbs), EXIT_USAGE)
    return run_verb(verbs[words[0]], [*early, *words[1:]])


def run_verb(verb: Verb, words: Sequence[str]) -> int:
    """Import one verb and run it on the words that follow it."""
    try:
        module = importlib.import_module(verb.module)
        args = parser_of(verb).parse_args(join_json_file(words))
        talk.level = args.verbose - args.quiet
        import_plugins(names_in(args.plugins))
        return int(module.run(args) or 0)
    except LlaFusionError as error:
        if talk.level > 0:
            print(*map(printable, traceback.format_exc().splitlines()), sep="\n", file=sys.stderr)
        return _complain(f"{verb.name}: {error}")
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if missing in ROS_MODULES:
            return _complain(
                f"{verb.name}: needs ROS 2, but {error.name} cannot be imported; "
                "source your ROS 2 or run `make setup` and use .venv/bin/lla-fusion"
            )
        if missing in OPTION_MODULES:
            return _complain(f"{verb.name}: {missing_extra(missing, OPTION_MODULES[missing])}")
        if missing in EXTRA_MODULES:
            return _complain(f"{verb.name}: {missing_extra(missing, verb.extra)}")
        raise
    except KeyboardInterrupt:
        return _complain(f"{verb.name}: interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader (head, less) has seen enough; keep Python from complaining once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILURE


def parser_of(verb: Verb) -> argparse.ArgumentParser:
    """What reads the words that follow a verb."""
    parser = argparse.ArgumentParser(
        prog=f"{PROGRAM} {verb.name}",
        description=verb.help[:1].upper() + verb.help[1:] + ".",
        epilog=_example(verb),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    importlib.import_module(verb.module).add_arguments(parser)
    parser.add_argument(
        "--plugins", default="", metavar="MODULES", help="Python modules that register architectures"
    )
    loudness = parser.add_mutually_exclusive_group()
    loudness.add_argument("-q", "--quiet", action="store_true", help="no progress: only results and errors")
    loudness.add_argument(
        "-v", "--verbose", action="store_true", help="progress as lines; where errors arise"
    )
    return parser


def overview(verbs: dict[str, Verb]) -> str:
    """The text of `lla-fusion --help`."""
    width = max((len(name) for name in verbs), default=0)
    lines = [
        f"usage: {PROGRAM} VERB [options]",
        "",
        "Calibrated class distributions for tracked objects.",
        "",
        "verbs:",
    ]
    lines += [f"  {verb.name:<{width}}  {verb.help}" for verb in verbs.values()]
    lines += [
        "",
        f"`{PROGRAM} VERB --help` explains a verb, with an example; `{PROGRAM} --version` tells the version.",
    ]
    return "\n".join(lines)


def _example(verb: Verb) -> str | None:
    return f"example:\n{textwrap.indent(verb.example.strip(), '  ')}" if verb.example else None


def _complain(sentence: str, code: int = EXIT_FAILURE) -> int:
    print(f"{PROGRAM}: {printable(sentence)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
