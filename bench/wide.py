"""What heads, posterior, fusion and warnings add to a large network for a thousand classes: memory, CPU time.

Networks like ViT-B/16 (768 features) and ResNet-50 (2,048), of random weights, or your own files. Posterior
and warnings are fitted on features drawn at random.

Example:
    python -m bench.wide --onnx efficientnet_lite0.onnx --size 224
"""

from __future__ import annotations

import argparse
import tempfile
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from bench.__main__ import table
from bench.fusion import STEPS, EngineAt
from bench.large_networks import CLASSES
from bench.timing import Call, Spread, interleaved
from lla_fusion_ros.bundle import Bundle, BundleMeta, load_bundle, make_bundle, save_bundle
from lla_fusion_ros.bundle.bundle import ONNX, graph_tensors
from lla_fusion_ros.lab.importing.head import leading_directions, seen_width
from lla_fusion_ros.lab.importing.preprocess import Preprocessing
from lla_fusion_ros.lab.importing.recipe import Source
from lla_fusion_ros.lab.importing.sources import from_onnx, from_torch
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.networks.heads import Head, views_of
from lla_fusion_ros.networks.onnx_engine import Trunks
from lla_fusion_ros.posterior.fit import DiagonalSum
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.warnings.fit import fit_warnings

TRACKED = 5  # objects of a frame
TRACKS, VIEWS = CLASSES + 40, 2  # tracks that warnings are fitted on; the last 40 are strangers


def bundle_of(source: Source, heads: int) -> Bundle:
    """What `import` makes of a network, on features drawn about those of a few crops."""
    rng = np.random.default_rng(0)
    crops = rng.integers(0, 256, (4, source.size, source.size, 3), np.uint8)
    (few,) = Trunks([source.graph], source.size, threads=1)(crops)
    phi = rng.normal(few.mean(axis=0), few.std() + 1e-3, (TRACKS * VIEWS, few.shape[1])).astype(np.float32)
    basis = leading_directions(phi, seen_width(phi.shape[1], heads, CLASSES))
    weights = rng.normal(0, 1 / np.linalg.norm(phi, axis=1).mean(), (heads, CLASSES, phi.shape[1]))
    made = [
        Head(0, 3 * weight.astype(np.float32), np.zeros(CLASSES, np.float32), basis) for weight in weights
    ]
    both = views_of(made, [phi])
    logits, features = both[..., :CLASSES], both[..., CLASSES:]
    total = DiagonalSum(heads, CLASSES, features.shape[2])
    total.add(logits.astype(float), features.astype(float))
    posterior = total.finish(1.0)
    tracks = TrackViews.of_one_camera(
        logits.reshape(TRACKS, VIEWS, heads, -1),
        features.reshape(TRACKS, VIEWS, heads, -1),
        np.full(TRACKS, VIEWS),
        np.append(np.arange(CLASSES), np.full(TRACKS - CLASSES, -1)),
    )
    arrays, record = fit_warnings(
        posterior, tracks.take(slice(0, CLASSES)), tracks.take(slice(CLASSES, None))
    ).to_parts()
    meta = BundleMeta(
        {"name": ONNX},
        heads,
        tuple(map(str, range(CLASSES))),
        source.size,
        0.0,
        {},
        1.0,
        1.0,
        "evidence_pool",
        trunks=(0,) * heads,
        warnings=record,
    )
    return make_bundle(meta, graph_tensors({"float32": [source.graph]}, made), posterior, arrays)


def measured(name: str, source: Source, heads: int, rounds: int) -> dict[str, Any]:
    """Milliseconds are those of one object; `variances` are of all classes, as some fusers want them."""
    with tempfile.TemporaryDirectory() as folder:
        save_bundle(bundle_of(source, heads), Path(folder, "wide.safetensors"))
        bundle = load_bundle(Path(folder, "wide.safetensors"))
    crops = np.random.default_rng(1).integers(0, 256, (TRACKED, source.size, source.size, 3), np.uint8)
    trunk, networks = Trunks([source.graph], source.size, threads=1), Classifier(bundle, "cpu", threads=1)
    views = networks(crops)
    tracemalloc.start()
    engine = EngineAt(bundle, [views], 2 * STEPS)
    posterior = bundle.posterior()
    posterior.single_variance(views.features)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    calls: dict[str, Call] = {
        "forward": partial(trunk, crops),
        "views": partial(networks, crops),
        "variances": partial(posterior.single_variance, views.features),
        "engine": engine,
    }
    seconds = interleaved(calls, rounds, least=0.0).seconds
    seconds["engine"] /= STEPS
    whole = seconds["views"] + seconds["variances"] + seconds["engine"]
    ms = {f"{key}_ms": 1e3 * float(np.median(each)) / TRACKED for key, each in seconds.items()}
    return {
        "network": name,
        "features": len(bundle.tensors["basis.0"]),
        "heads": heads,
        "seen": posterior.features,
        "file_MB": bundle.tensors["posterior.factors"].nbytes / 1e6,
        "process_MB": (held + posterior.factors.nbytes) / 1e6,
        **ms,
        **Spread.of(whole / seconds["forward"]).record("whole_over_forward", 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--onnx", type=Path, nargs="*", default=[], help="further networks")
    parser.add_argument("--size", type=int, default=224, help="side of the crops (%(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="(%(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    wanted = Preprocessing(size=options.size)
    sources = {path.stem: from_onnx(path, wanted, keep_head=False) for path in options.onnx}
    for name in ("vit", "resnet"):
        sources[name] = from_torch(f"bench.large_networks:{name}", None, wanted)
    rows = [
        measured(name, source, heads, options.rounds) for name, source in sources.items() for heads in (1, 5)
    ]
    Console(highlight=False, width=160).print(table(rows))


if __name__ == "__main__":
    main()
