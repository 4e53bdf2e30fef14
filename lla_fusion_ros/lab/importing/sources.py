"""A network of somebody else's, ready for the recipe: cut, with its preprocessing in front, tried once."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from lla_fusion_ros.lab.importing.onnx_files import CutGraph, cut_at_head, read_onnx
from lla_fusion_ros.lab.importing.preprocess import Preprocessing, taking_crops
from lla_fusion_ros.lab.importing.recipe import Source
from lla_fusion_ros.networks.onnx_engine import Trunks
from lla_fusion_ros.types.errors import InputError, LlaFusionError

MOST_MEMORY = 4 * 1024**3  # that one crop may take on top of what the process has
DEFAULT_SIZE = 224


def from_onnx(path: Path, wanted: Preprocessing, layer: str = "") -> Source:
    return _source(path.name, cut_at_head(read_onnx(path), str(path), layer), wanted, str(path))


def from_torch(factory: str, weights: Path | None, wanted: Preprocessing, layer: str = "") -> Source:
    """The module travels as the graph that torch exports of it."""
    from lla_fusion_ros.lab.importing.torch_modules import cut_module, load_module

    module = load_module(factory, weights)
    cut = cut_module(module, wanted.size or DEFAULT_SIZE, layer=layer)
    return _source(factory if weights is None else weights.name, cut, wanted, factory)


def _source(name: str, cut: CutGraph, wanted: Preprocessing, where: str) -> Source:
    graph, size = taking_crops(cut.model, wanted, where)
    try:
        with _bounded(MOST_MEMORY):
            outputs = Trunks([graph], size, "cpu")(np.zeros((1, size, size, 3), np.uint8))
    except (MemoryError, LlaFusionError) as error:
        reason = str(error) or f"it takes more than {MOST_MEMORY / 2**30:.0f} GiB for one crop"
        raise InputError(f"'{where}' does not run: {reason}") from None
    width = outputs[0].shape[1]
    if cut.weight is not None and cut.weight.shape[1] != width:
        raise InputError(
            f"'{where}': its last layer '{cut.layer}' takes {cut.weight.shape[1]} features, but {width} "
            "values come to it for each crop; name another with --layer"
        )
    return Source(name, graph, size, cut.weight, cut.bias)


@contextmanager
def _bounded(more: int) -> Iterator[None]:
    """A graph can ask for any amount of memory: it gets so much, and is refused beyond."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = used + more if hard == resource.RLIM_INFINITY else min(used + more, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
