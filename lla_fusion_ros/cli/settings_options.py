"""Options that set what the nodes' parameters set: `--fuser NAME` and `--set NAME=VALUE`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from typing import Any

from lla_fusion_ros.stream.stream_settings import CameraWiring, StreamSettings
from lla_fusion_ros.types.errors import InputError, unknown_name
from lla_fusion_ros.types.settings import RENAMED, FusionSettings


def add_setting_options(parser: argparse.ArgumentParser) -> None:
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
