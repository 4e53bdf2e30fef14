"""`lla-fusion VERB …`: finds the verb, reads its arguments, runs it, and turns trouble into one sentence."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import textwrap
from collections.abc import Sequence

from lla_fusion_ros import __version__
from lla_fusion_ros.cli.json_option import join_json_file
from lla_fusion_ros.cli.verbs import Verb, find_verbs
from lla_fusion_ros.cli.words import printable
from lla_fusion_ros.errors import LlaFusionError, unknown_name

PROGRAM = "lla-fusion"
EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130  # what shells report for Ctrl-C

ROS_MODULES = {
    "rclpy",
    "vision_msgs",
    "sensor_msgs",
    "diagnostic_msgs",
    "rosgraph_msgs",
    "std_srvs",
    "std_msgs",
}


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
    if words[0] not in verbs:
        return _complain(unknown_name("verb", words[0], verbs), EXIT_USAGE)
    return run_verb(verbs[words[0]], words[1:])


def run_verb(verb: Verb, words: Sequence[str]) -> int:
    """Import one verb and run it on the words that follow it."""
    try:
        module = importlib.import_module(verb.module)
        return int(module.run(parser_of(verb).parse_args(join_json_file(words))) or 0)
    except LlaFusionError as error:
        return _complain(f"{verb.name}: {error}")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ROS_MODULES:
            raise
        return _complain(
            f"{verb.name}: needs ROS 2, but {error.name} cannot be imported; "
            "source your ROS 2 or run `make setup` and use .venv/bin/lla-fusion"
        )
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
