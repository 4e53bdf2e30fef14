"""A network of somebody else's, ready for the recipe: cut, with its preprocessing in front, tried once."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
from scipy.special import log_softmax, softmax

from lla_fusion_ros.lab.importing.onnx_files import CutGraph, cut_at_head, read_onnx
from lla_fusion_ros.lab.importing.preprocess import Preprocessing, taking_crops
from lla_fusion_ros.lab.importing.recipe import Source
from lla_fusion_ros.networks.onnx_engine import Trunks
from lla_fusion_ros.types.errors import InputError, LlaFusionError

MOST_MEMORY = 4 * 1024**3  # that two crops may take on top of what the process has
CLOSE = 1e-2  # of the largest value: how well head and trunk must give what the network gives
SAME = 0.1  # of the largest feature; networks in 8 bits share their scales among crops
DEFAULT_SIZE = 224


def from_onnx(path: Path, wanted: Preprocessing, layer: str = "", keep_head: bool = True) -> Source:
    """A head that is kept, and was not named, must give what the network gives."""
    where = str(path)
    model = read_onnx(path)
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    *_, outputs = _tried(whole, wanted, where)  # from here on the graph is known to be sound
    cut = cut_at_head(model, where, layer)
    return _source(path.name, cut, wanted, where, outputs[0] if keep_head and not layer else None)


def from_torch(factory: str, weights: Path | None, wanted: Preprocessing, layer: str = "") -> Source:
    """The module travels as the graph that torch exports of it."""
    from lla_fusion_ros.lab.importing.torch_modules import cut_module, load_module

    module = load_module(factory, weights)
    cut = cut_module(module, wanted.size or DEFAULT_SIZE, layer=layer)
    return _source(factory if weights is None else weights.name, cut, wanted, factory)


def _source(name: str, cut: CutGraph, wanted: Preprocessing, where: str, expected: object = None) -> Source:
    """`expected` is what the whole network gives for the crops that are tried; None: any head."""
    graph, size, (alone,), (features,) = _tried(cut.model, wanted, where)
    width = features.shape[1]
    if not width or (alone.shape, features.shape) != ((1, width), (2, width)):
        raise InputError(
            f"'{where}' gives features of shape {features.shape} for two crops; each crop must have one row"
        )
    if not np.isfinite(features).all():
        raise InputError(f"'{where}' returns NaN or infinity on crops of noise; are --mean, --std right?")
    if not np.allclose(alone[0], features[0], rtol=0, atol=SAME * np.abs(features).max()):
        raise InputError(
            f"'{where}' does not say the same of a crop alone and of the crop beside another one; export the "
            "network for evaluation, not for training"
        )
    if cut.weight is not None and cut.weight.shape[1] != width:
        raise InputError(
            f"'{where}': its last layer '{cut.layer}' takes {cut.weight.shape[1]} features, but {width} "
            "values come to it for each crop; name another with --layer"
        )
    if cut.weight is not None and cut.bias is not None and expected is not None:
        _check_head(features @ cut.weight.T + cut.bias, expected, cut.layer, where)
    return Source(name, graph, size, cut.weight, cut.bias)


def _tried(
    model: onnx.ModelProto, wanted: Preprocessing, where: str
) -> tuple[bytes, int, list[np.ndarray], list[np.ndarray]]:
    """The graph that takes crops, their side, and what it gives for one crop of noise and for two."""
    graph, size = taking_crops(model, wanted, where)
    how = ""
    try:
        with _bounded(MOST_MEMORY):
            run = Trunks([graph], size, "cpu")
            crops = np.random.default_rng(0).integers(0, 256, (2, size, size, 3), np.uint8)
            alone = run(crops[:1])
            how = " with two crops at once, as it does with one"
            both = run(crops)
    except (MemoryError, LlaFusionError) as error:
        why = str(error) or f"it takes more than {MOST_MEMORY / 2**30:.0f} GiB"
        raise InputError(f"'{where}' does not run{how}: {why}") from None
    return graph, size, alone, both


def _check_head(logits: np.ndarray, expected: object, layer: str, where: str) -> None:
    """Trunk and head must give what the network gives, up to a softmax."""
    if isinstance(expected, np.ndarray) and expected.size == logits.size:
        wanted = expected.reshape(logits.shape).astype(np.float64)
        for given in (logits, softmax(logits, axis=1), log_softmax(logits, axis=1)):
            if np.abs(given - wanted).max() <= CLOSE * np.abs(wanted).max():
                return
    raise InputError(
        f"the output of '{where}' is neither what its last layer '{layer}' gives nor the softmax of that; "
        "name its head with --layer, or a tensor of features together with --head new"
    )


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
