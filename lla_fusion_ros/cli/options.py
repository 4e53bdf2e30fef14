"""Options that mean the same in every verb: `--json`, those of data sets, those of the nodes' settings."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lla_fusion_ros.cli.words import check_file, data_options
from lla_fusion_ros.types.errors import InputError, LlaFusionError, unknown_name
from lla_fusion_ros.types.printable import printable
from lla_fusion_ros.types.settings import HALF_LIFE, RENAMED, FusionSettings, hazard_of

if TYPE_CHECKING:
    from lla_fusion_ros.stream.stream_settings import CameraWiring, StreamSettings
    from lla_fusion_ros.types.track_set import TrackSet

STDOUT = "-"


class Arguments(Protocol):
    """A parser, or a group of its arguments."""

    def add_argument(self, *names: str, **how: Any) -> argparse.Action: ...


def add_json_option(parser: Arguments) -> None:
    parser.add_argument(
        "--json",
        nargs="?",
        const=STDOUT,
        type=_place,
        metavar="FILE",
        help="the whole result as one JSON document: on standard output, with nothing else there, or in "
        "FILE (it ends in .json) beside the usual text",
    )


def join_json_file(words: Sequence[str]) -> list[str]:
    """`info --json drive` describes the drive; only what ends in .json is a file for the document."""
    joined = list(words)
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else ""
        if word == "--json" and following != STDOUT and not following.endswith(".json"):
            joined[index] = f"--json={STDOUT}"
    return joined


def write_json(document: Any, place: str | None) -> None:
    """Where the user wants it, if at all."""
    if place is None:
        return
    text = json.dumps(document, indent=1)
    if place == STDOUT:
        print(text)
        return
    try:
        Path(place).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise LlaFusionError(f"'{place}' cannot be written: {error.strerror}") from None


def _place(text: str) -> str:
    """Refused before hours of work, not after them."""
    if text != STDOUT:
        try:
            check_file("--json", Path(text))
        except InputError as error:  # a ValueError, of which argparse would make a sentence of its own
            raise LlaFusionError(str(error)) from None
    return text


def add_data_arguments(parser: Arguments, required: bool = True) -> None:
    parser.add_argument("--dataset", required=required, help="name of the data set; docs/train.md lists them")
    parser.add_argument("--root", help="its folder")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the data set, for example tracks=2000",
    )
    parser.add_argument(
        "--layout",
        choices=("tracks", "images"),
        help="of your own folders: files are named <track>_<frame>, or every image shows another object "
        "(what all the names say; a mixture is refused)",
    )
    parser.add_argument(
        "--split-by",
        metavar="COLUMN",
        help="of your own folders with a tracks.csv: whatever shares this column, such as the site, stays on "
        "one side of the split",
    )
    parser.add_argument(
        "--skip-bad",
        action="store_true",
        help="of your own folders: leave out images that cannot be read, and count them",
    )


def options_of(args: argparse.Namespace) -> dict[str, Any]:
    """What the loader of the data set is told."""
    options = data_options(args.option)
    if args.layout:
        options["layout"] = args.layout
    if args.split_by:
        options["split_by"] = args.split_by
    if args.skip_bad:
        options["skip_bad"] = True
    return options


def tell_skipped(tracks: TrackSet) -> None:
    """A line for every reader of a log, also where standard output is JSON."""
    if tracks.skipped:
        shown = ", ".join(f"'{file}'" for file in tracks.skipped[:5])
        more = f" and {len(tracks.skipped) - 5} more" if len(tracks.skipped) > 5 else ""
        print(
            f"left out {len(tracks.skipped)} images that cannot be read: {printable(shown)}{more}",
            file=sys.stderr,
        )


def add_setting_options(parser: argparse.ArgumentParser) -> None:
    from lla_fusion_ros.stream.stream_settings import StreamSettings  # brings scipy

    names = ", ".join(field.name for kind in (FusionSettings, StreamSettings) for field in fields(kind))
    parser.add_argument("--fuser", default="", help="fusion rule (default: the bundle's)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"any of the settings {names}; or CAMERA.time_offset (seconds), CAMERA.box_frame, "
        "CAMERA.box_size (WIDTHxHEIGHT) where boxes are in the pixels of a network's input",
    )


def wiring_from(args: argparse.Namespace) -> dict[str, CameraWiring]:
    """What `--set CAMERA.NAME=VALUE` says of cameras; see `add_setting_options`."""
    from lla_fusion_ros.stream.stream_settings import CameraWiring

    values: dict[str, dict[str, Any]] = {}
    for text in args.set:
        name, _, value = text.partition("=")
        camera, _, own = name.rpartition(".")
        if camera:
            values.setdefault(camera, {})[own] = _parse_wiring(text, own, value)
    return {camera: CameraWiring(**own) for camera, own in values.items()}


def _parse_wiring(text: str, name: str, value: str) -> Any:
    try:
        if name == "box_size":
            width, height = value.split("x")
            return float(width), float(height)
        return {"time_offset": float, "box_frame": str}[name](value)
    except KeyError:
        raise InputError(f"--set {text}: a camera has time_offset, box_frame and box_size") from None
    except ValueError:
        kind = "WIDTHxHEIGHT" if name == "box_size" else "a number"
        raise InputError(f"--set {text}: '{value}' is not {kind}") from None


def settings_from(args: argparse.Namespace) -> tuple[FusionSettings, StreamSettings]:
    """Settings as the user gave them; a wrong name or value is refused with a sentence."""
    from lla_fusion_ros.stream.stream_settings import StreamSettings

    values: dict[type, dict[str, Any]] = {FusionSettings: {}, StreamSettings: {}}
    if args.fuser:
        values[FusionSettings]["fuser"] = args.fuser
    kinds = {field.name: (kind, str(field.type)) for kind in values for field in fields(kind)}
    for text in args.set:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--set {text}: expected NAME=VALUE with a name out of {', '.join(kinds)}")
        if "." in name:
            continue  # of a camera, see `wiring_from`
        if name in RENAMED:
            print(f"'{name}' is now called '{RENAMED[name]}'", file=sys.stderr)
            name = RENAMED[name]
        if name == HALF_LIFE:
            hazard, sentence = hazard_of(_parse(text, value, "float"))
            print(f"setting {sentence}", file=sys.stderr)
            name, value = "class_hazard", str(hazard)
        if name not in kinds:
            raise InputError(f"--set {text}: {unknown_name('setting', name, kinds)}")
        kind, type_name = kinds[name]
        values[kind][name] = _parse(text, value, type_name)
    return FusionSettings(**values[FusionSettings]), StreamSettings(**values[StreamSettings])


def _parse(text: str, value: str, type_name: str) -> Any:
    try:
        if type_name == "bool":
            return {"true": True, "false": False}[value.lower()]
        return {"int": int, "float": float, "str": str}[type_name](value)
    except (ValueError, KeyError):
        raise InputError(f"--set {text}: '{value}' is not of type {type_name}") from None
