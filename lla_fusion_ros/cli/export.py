"""`lla-fusion export`: a bundle in, ONNX graphs out."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lla_fusion_ros.cli.options import STDOUT, add_data_arguments, add_json_option, options_of, write_json
from lla_fusion_ros.cli.words import check_file
from lla_fusion_ros.types.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from lla_fusion_ros.bundle import Bundle

NAME = "export"
EXTRA = "import"
HELP = (
    "write a bundle for vehicles without torch, or its networks and their Laplace variance as one ONNX file"
)
EXAMPLE = """\
lla-fusion export gtsrb --out vehicle.safetensors
lla-fusion export gtsrb --int8 --dataset gtsrb --root data/GTSRB --out vehicle.safetensors
lla-fusion export mine.safetensors --out mine.onnx"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", help="the model file, or the name of one that ships")
    parser.add_argument(
        "--out",
        required=True,
        metavar="FILE",
        help=".safetensors: a bundle that runs in ONNX Runtime; .onnx: crops in, logits and variances out",
    )
    parser.add_argument(
        "--int8",
        action="store_true",
        help="add the networks in 8 bits, scales measured on images of --dataset; CPUs then use these",
    )
    add_data_arguments(parser, required=False)
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    import onnx

    from lla_fusion_ros.bundle import load_ensemble, save_bundle
    from lla_fusion_ros.lab.importing.export import as_one_graph, exported

    out = Path(args.out)
    check_file("--out", out)
    if out.suffix not in (".onnx", ".safetensors") or (args.int8 and out.suffix == ".onnx"):
        raise InputError(f"--out '{out}' must end in .safetensors, or without --int8 in .onnx")
    bundle = load_ensemble(args.bundle)
    fresh = exported(bundle, _crops(args, bundle) if args.int8 else None)
    if out.suffix == ".onnx":
        onnx.save(as_one_graph(fresh), out)
    else:
        save_bundle(fresh, out)
    size = out.stat().st_size
    write_json({"file": str(out), "bytes": size, "classes": list(bundle.class_names)}, args.json)
    if args.json != STDOUT:
        print(f"{out}: {bundle.networks} networks, {bundle.classes} classes, {size / 1e6:.1f} MB")
    return 0


def _crops(args: argparse.Namespace, bundle: Bundle) -> np.ndarray:
    from lla_fusion_ros.lab.datasets import cut, load_dataset
    from lla_fusion_ros.lab.importing.export import ordinary_crops

    if args.dataset is None:
        raise InputError("--int8 measures the networks on ordinary images: name them with --dataset")
    tracks = load_dataset(args.dataset, args.root, None, bundle.input_size, True, **options_of(args))
    return ordinary_crops([cut(tracks, bundle.input_size, bundle.crop_margin).images])
