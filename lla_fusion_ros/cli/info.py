"""`lla-fusion info`: what is in a bundle or a bag, or on the running graph."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lla_fusion_ros.cli.options import STDOUT, add_json_option, write_json
from lla_fusion_ros.cli.words import printable
from lla_fusion_ros.types.errors import InputError

if TYPE_CHECKING:
    from lla_fusion_ros.bundle import Bundle

NAME = "info"
EXTRA = "bags"
HELP = "tell what is in a bundle, a bag or the running graph; fails where it cannot be fused"
EXAMPLE = """\
lla-fusion info models/gtsrb.safetensors
lla-fusion info belgium
lla-fusion info recordings/drive_1
lla-fusion info --seconds 10
lla-fusion info models/gtsrb.safetensors --json | jq .class_names"""

_BAG_ENDINGS = (".mcap", ".db3", ".zstd", ".zst", ".bag", ".yaml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        nargs="?",
        help="a bundle (.safetensors, or the name of one that ships), or a bag (its folder, .mcap or .db3); "
        "without it: the ROS graph that runs",
    )
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="listen to the running graph so long (%(default)g)"
    )
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    if args.file is None:
        return _graph(args)
    path = Path(args.file)
    if path.is_dir() or path.name.endswith(_BAG_ENDINGS):
        from lla_fusion_ros.bags.describe import describe_bag

        description = describe_bag(path)
        _tell(args.json, description.as_dict(), _bag_lines(description))
        return 0 if description.can_be_fused else 1
    from lla_fusion_ros.bundle import load_bundle
    from lla_fusion_ros.bundle.resources import find_model

    path = find_model(path)
    bundle = load_bundle(path)
    size = path.stat().st_size
    document = {**bundle.meta.as_dict(), "hash": bundle.hash, "bytes": size}
    _tell(args.json, document, bundle_lines(bundle, size))
    return 0


def _graph(args: argparse.Namespace) -> int:
    from lla_fusion_ros.ros.graph_info import describe_graph

    if not 0 < args.seconds <= 3600:
        raise InputError(f"--seconds {args.seconds:g}: it must be above 0 and at most 3600")
    found = describe_graph(args.seconds)
    _tell(args.json, found.as_dict(), _graph_lines(found))
    return 0 if found.can_be_fused else 1


def _graph_lines(found: Any) -> list[str]:
    lines = [f"can be fused: {'yes' if found.can_be_fused else 'no'}"]
    lines += [f"missing   {sentence}" for sentence in found.missing]
    lines += [f"note      {sentence}" for sentence in found.notes]
    for camera in found.cameras:
        size = "" if camera.image_size is None else ", {} x {}".format(*camera.image_size)
        lines += [
            f"camera    {camera.name}",
            f"  image       {camera.image}, {camera.image_rate:.1f} Hz{size}, {camera.image_qos}",
        ]
        if camera.detections:
            lines.append(
                f"  detections  {camera.detections}, {camera.detections_rate:.1f} Hz, "
                f"{camera.objects} boxes, {camera.type}, {camera.detections_qos}"
            )
        if camera.offset is not None:
            lines.append(f"  stamps      detections {camera.offset:+.4f} s from the images'")
        if camera.chosen:
            lines.append(f"  identity    {camera.chosen}")
        if camera.boxes is not None:
            lines.append("  boxes       x {0:.0f} to {2:.0f}, y {1:.0f} to {3:.0f}".format(*camera.boxes))
    if found.command:
        lines.append(f"launch    {found.command}")
    return lines


def bundle_lines(bundle: Bundle, size: int) -> list[str]:
    """A bundle as lines of text."""
    meta = bundle.meta
    data, training, rates = meta.dataset, meta.training, bundle.change_rates()
    others = [name for name in meta.fusers if name != meta.default_fuser]
    lines = [
        f"bundle            {bundle.source}",
        f"hash              {bundle.hash}",
        f"size              {size / 1e6:.2f} MB, made with lla_fusion_ros {meta.package_version}",
        f"networks          {meta.networks} x {_architecture(meta.architecture)}{_common(meta.training)}",
        f"input             {meta.input_size} px RGB, boxes grown by {meta.crop_margin:g} on each side",
        f"posterior         prior precision {meta.prior_precision:.3g}, "
        f"T_theta {meta.posterior_temperature:.3g}"
        + ("" if meta.posterior_temperature else " (Laplace term inactive in the pmf)"),
        f"default fuser     {meta.default_fuser} {_values(meta.fusers.get(meta.default_fuser, {}))}",
        *(f"  not fitted      {sentence}; calibrate the bundle again" for sentence in bundle.older),
        f"changes           {rates.identity:g} a second to another object, {rates.change:g} to another class "
        f"of those that change; lapse {rates.lapse:g}",
        *_safety_lines(
            meta.scores.get("default_fuser", {}).get("safety", {}).get(meta.default_fuser),
            meta.fusers.get(meta.default_fuser, {}).get("doubt"),
        ),
        *_reliance_lines(bundle),
        f"other fusers      {', '.join(others) or 'none fitted'}",
        f"data              {data.get('name', 'not recorded')} {str(data.get('digest', ''))[:12]}, "
        f"split seed {data.get('split_seed')}, "
        + ("tested on its own test part, " if data.get("own_test") else "")
        + ("trained on all tracks: none are left to test on, " if data.get("all_tracks") else "")
        + f"held out {data.get('holdout') or 'nothing'}",
    ]
    lines += [f"made by           {command}" for command in training.get("commands", [])]
    lines += _warning_lines(meta.warnings)
    for part in ("validation", "test"):
        lines += _score_lines(part, meta.scores.get(part))
    lines.append(f"classes           {len(meta.class_names)}")
    mark = {name: "  (changes under one id)" for name in meta.changing}
    lines += [f"  {index:3d}  {name}{mark.get(name, '')}" for index, name in enumerate(meta.class_names)]
    return lines


def _architecture(architecture: dict[str, Any]) -> str:
    options = ", ".join(f"{key} {value}" for key, value in architecture.items() if key != "name")
    return f"{architecture.get('name')}" + (f" ({options})" if options else "")


def _common(training: dict[str, Any]) -> str:
    shared = training.get("shared")
    return f", the first {shared} convolutions in common" if shared else ""


def _values(values: dict[str, Any]) -> str:
    plain = {key: value for key, value in values.items() if isinstance(value, int | float)}
    return "(" + ", ".join(f"{key} {value:.3g}" for key, value in plain.items()) + ")" if plain else ""


def _safety_lines(safety: dict[str, Any] | None, doubt: float | None) -> list[str]:
    """How sure the default fuser may get, and what was measured on validation views."""
    if not safety:
        return []
    objects = round(0.5 / safety["needed_doubt"] - 1)
    seen = "is not bounded" if doubt is None else f"never falls below {doubt:.2g}"
    lines = [
        f"certainty         1 - p {seen}; {objects} validation objects support {safety['needed_doubt']:.2g}",
        f"contradiction     sure opposite views: median p {safety['contradiction_median']:.2f}, above .9 in "
        f"{safety['contradiction_high']:.1%} of {safety['pairs']} pairs",
        f"odd frame         one sure frame of another class: p above .9 in {safety.get('odd_high', 0):.1%}",
        f"repetition        one frame 200 times: certainty {safety['certainty_rise']:+.3f}, "
        f"NLL {safety['nll_rise']:+.3f}",
    ]
    return lines + [f"not safe          {fault}" for fault in safety["faults"]]


def _reliance_lines(bundle: Bundle) -> list[str]:
    """What coverage of sets can be promised with how many objects, and what bounds there are."""
    reliance = bundle.reliance()
    if reliance is None:
        return ["sets and bounds   not calibrated: `lla-fusion calibrate` does it"]
    from lla_fusion_ros.reliance.statements import CONFIDENCE, GROUPS

    groups = [
        f"{reliance.promised(g):.1%} from {first} view{'s' * (first > 1)} on ({reliance.objects[g]} objects)"
        if reliance.promised(g)
        else f"nothing from {first} views on ({reliance.objects[g]} objects)"
        for g, first in enumerate(GROUPS)
    ]
    return [
        f"sets              can promise {', '.join(groups)}",
        f"bounds            the error of the surest objects is at most {reliance.bounds[0]:.2%}, "
        f"of the least sure {reliance.bounds[-1]:.1%}, at {CONFIDENCE:.0%} confidence",
    ]


def _warning_lines(warnings: dict[str, Any]) -> list[str]:
    if not warnings:
        return ["warnings          none fitted"]
    quality = warnings.get("quality", {})
    shown = {
        "auroc_combined": "AUROC on synthetic outliers",
        "switch_detected_5": "identity switches found in 5 frames",
    }
    parts = [f"{text} {quality[key]:.3f}" for key, text in shown.items() if key in quality]
    lines = [f"warnings          {'; '.join(parts) or 'fitted'}"]
    smallest = (warnings.get("usual") or {}).get("distance", {}).get("smallest", 0.0)
    if smallest > 0:
        lines.append(f"boxes             fitted from {smallest:.0f} px on; in smaller ones nobody can tell")
    return lines


def _score_lines(part: str, scores: dict[str, Any] | None) -> list[str]:
    if not scores:
        return []
    lines = [f"{part + ' scores':<18}{scores['tracks']} tracks, default fuser"]
    lines.append("  regime   single frame   L   accuracy [95% interval]    NLL     ECE")
    for record in scores["fused"]:
        low, high = record["accuracy_interval"]
        single = scores["single_frame"][record["regime"]]
        lines.append(
            f"  {record['regime']:<8} {single:12.4f} {record['L']:4d}   {record['accuracy']:.4f} "
            f"[{low:.4f}, {high:.4f}]   {record['nll']:.4f}  {record['ece']:.4f}"
        )
    return lines


def _bag_lines(description: Any) -> list[str]:
    lines = [
        f"bag       {description.path}",
        f"length    {description.seconds:.1f} s, {description.messages} messages",
        f"tracks    {description.tracks}, of which several cameras see {description.shared_tracks}",
        f"can be fused: {'yes' if description.can_be_fused else 'no'}",
    ]
    lines += [f"missing   {sentence}" for sentence in description.missing]
    lines += [f"note      {sentence}" for sentence in description.notes]
    for camera in description.cameras:
        lines.append(
            f"camera    {camera.name}: {camera.kind}, {camera.frames} frames, "
            f"{camera.detections} detections, {camera.tracks} tracks"
            + (f"; {camera.chosen}" if camera.chosen else "")
        )
    lines += [f"topic     {name}  {kind}  {count}" for name, kind, count in description.topics]
    return lines


def _tell(place: str | None, document: dict[str, Any], lines: list[str]) -> None:
    write_json(document, place)
    if place != STDOUT:
        print("\n".join(printable(line) for line in lines))
