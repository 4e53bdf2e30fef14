"""The targets: name -> a function of bytes that either returns or raises an error of this package.

Whatever else a target lets out (another exception, a hang, a huge allocation, a wrong value) is a find.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from fuzz import seeds
from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import find_cameras
from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.bundle.container import read_container, write_container
from lla_fusion_ros.engine.engine import FusionEngine, Observation
from lla_fusion_ros.images.crops import Pixels, check_boxes, cut_crops, decode_compressed
from lla_fusion_ros.lab.datasets.images import read_image
from lla_fusion_ros.lab.datasets.sign_sets import read_annotations
from lla_fusion_ros.lab.datasets.single_images import read_idx
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.detections import parse_detections
from lla_fusion_ros.messages.images import matrix_of, parse_compressed_image, parse_image
from lla_fusion_ros.messages.status import parse_diagnostics, parse_label_info, parse_vision_info
from lla_fusion_ros.report.truth import read_truth
from lla_fusion_ros.ros.node_settings import NetworkSettings, NodeSettings
from lla_fusion_ros.stream.frames import ViewFrame
from lla_fusion_ros.stream.received import ViewQueue, ViewShape
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.errors import DatasetError, LlaFusionError
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.tally import Tally
from lla_fusion_ros.types.views import Views
from lla_fusion_ros.watch.scene import Scene

SHAPE = ViewShape(networks=2, classes=3, features=4)
MOST_MESSAGES = 1000  # read of a bag


@dataclass(frozen=True)
class Target:
    """Attributes:
    run: takes the bytes; returns, or raises LlaFusionError.
    seeds: good inputs to begin from.
    """

    run: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]

    def __call__(self, data: bytes) -> bool:
        """Whether the bytes were accepted; anything but an error of this package comes out as it is."""
        try:
            self.run(data)
        except LlaFusionError as error:
            assert str(error) and len(str(error)) < 5000, "an error is one sentence"
            return False
        return True


def check_pixels(pixels: Pixels) -> None:
    """What was decoded can be cropped."""
    height, width = pixels.shape
    assert height > 0 and width > 0
    crops = cut_crops(pixels, np.array([[width / 2, height / 2, width, height]]), 8, 0.1)
    assert crops.shape == (1, 8, 8, 3) and crops.dtype == np.uint8


def image(data: bytes) -> None:
    check_pixels(parse_image(data).pixels())


def compressed_image(data: bytes) -> None:
    check_pixels(parse_compressed_image(data).pixels())


def jpeg_or_png(data: bytes) -> None:
    check_pixels(decode_compressed(data))


def detections(data: bytes) -> None:
    quick, whole = parse_detections(data), parse_detections(data, with_scores=True)
    assert parse_detections(data, with_scores=True, most=1).scores == tuple(s[:1] for s in whole.scores)
    assert quick.ids == whole.ids and len(quick.bbox) == len(quick.ids) == len(whole.scores)
    checked = check_boxes(quick.boxes, (480, 640), 4.0)
    assert np.isfinite(checked.boxes[checked.keep]).all()
    assert checked.keep.sum() + sum(checked.reasons.values()) == len(quick)


def embeddings(data: bytes) -> None:
    views = SHAPE.unpack(matrix_of(parse_image(data)))
    views.check(SHAPE.networks, SHAPE.classes, SHAPE.features)


def vision_info(data: bytes) -> None:
    _, _, location, _ = parse_vision_info(data)
    queue = ViewQueue(("front",), SHAPE, "ab" * 32, StreamSettings(), Tally())
    queue.offer("front", "views/info", data)
    assert ("front" in queue.foreign) != (location.removeprefix("sha256:") == "ab" * 32)


def diagnostics(data: bytes) -> None:
    """Read, and shown by `lla-fusion watch`."""
    header, statuses = parse_diagnostics(data)
    scene = Scene()
    scene.take_diagnostics(statuses)
    scene.take_states("", header, statuses)
    scene.take_warnings("", statuses)
    json.dumps(scene.snapshot(), allow_nan=False)


def label_info(data: bytes) -> None:
    assert len(parse_label_info(data)) <= 1 << 16


def bundle(data: bytes) -> None:
    """The file as it is; nearly everything ends at its hash."""
    with _file(data, "model.safetensors") as path:
        load_bundle(path)


def bundle_document(data: bytes) -> None:
    """Other metadata under a right hash: it says that a file is whole, not that it is honest."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    with _file(seeds.bundle_file(), "model.safetensors") as path:
        _, tensors, _ = read_container(path)
        try:
            write_container(path, document, tensors)
        except (ValueError, RecursionError):  # NaN cannot be written
            return
        loaded = load_bundle(path)
    loaded.members()
    loaded.normalisation()
    engine = FusionEngine(loaded)
    posterior = loaded.posterior()
    zeros = Views(
        np.zeros((1, posterior.networks, posterior.classes)),
        np.zeros((1, posterior.networks, posterior.features)),
    )
    result = engine.update(Observation("front", 1, ["a"], zeros))
    assert np.isfinite(result.pmf).all() and abs(result.pmf.sum() - 1) < 1e-6


def bag_mcap(data: bytes) -> None:
    _read_bag(data, "bag.mcap")


def bag_sqlite3(data: bytes) -> None:
    _read_bag(data, "bag.db3")


def bag_metadata(data: bytes) -> None:
    """metadata.yaml beside a good file."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "bag_0.mcap").write_bytes(seeds.mcap_file())
        Path(folder, "metadata.yaml").write_bytes(data)
        with Bag(folder) as bag:
            assert bag.summary.count == seeds.BAG_MESSAGES


def idx(data: bytes) -> None:
    _read_idx(data, "file")


def idx_gz(data: bytes) -> None:
    _read_idx(data, "file.gz")


def _read_idx(data: bytes, name: str) -> None:
    with _file(data, name) as path:
        for dimensions in (1, 3):
            try:
                assert read_idx(path, dimensions).ndim == dimensions
                return
            except DatasetError as error:
                refused = error
    raise refused


def idx_packed(data: bytes) -> None:
    """The same under a right gzip checksum."""
    idx_gz(gzip.compress(data, 1))


def annotations(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "00003")
        folder.mkdir()
        (folder / "GT-00003.csv").write_bytes(data)
        for item in read_annotations(folder, 3):
            assert item.path.parent == folder


def image_file(data: bytes) -> None:
    with _file(data, "image.png") as path:
        pixels = read_image(path)
    assert pixels.ndim == 3 and pixels.shape[2] == 3 and pixels.dtype == np.uint8


def onnx_file(data: bytes) -> None:
    """A network to import: found sound, cut at its head, and tried."""
    from lla_fusion_ros.lab.importing.preprocess import Preprocessing
    from lla_fusion_ros.lab.importing.sources import from_onnx

    with _file(data, "net.onnx") as path:
        source = from_onnx(path, Preprocessing())
    assert source.weight is not None and source.bias is not None
    assert source.weight.shape == (len(source.bias), source.weight.shape[1])


def truth(data: bytes) -> None:
    with _file(data, "truth.json") as path:
        known = read_truth(path)
    for camera, stamp in known.frames:
        boxes = np.array([[60.0, 40.0, 0.0, 30.0, 30.0], [np.nan] * 5])
        empty = Views(np.zeros((2, 1, 2), np.float32), np.zeros((2, 1, 1), np.float32))
        seen = ViewFrame(camera, Header(stamp, ""), ("1", "2"), boxes, empty, ("1", "2"))
        assert known.judge(seen).nothing[1]


def settings(data: bytes) -> None:
    """Values of any type and size for every setting, as a parameter file or a parameter service may give."""
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(values, dict):
        return
    for kind in (FusionSettings, StreamSettings, NodeSettings, NetworkSettings):
        names = {field.name for field in fields(kind)}
        kind(**{name: value for name, value in values.items() if name in names})


def _read_bag(data: bytes, name: str) -> None:
    with _file(data, name) as path, Bag(path) as bag:
        find_cameras(bag.summary)
        assert bag.summary.duration >= 0
        for count, message in enumerate(bag.messages()):
            assert isinstance(message.data, bytes) and message.topic
            if count > MOST_MESSAGES:
                break


@contextmanager
def _file(data: bytes, name: str) -> Iterator[Path]:
    """The bytes as a file of that name, in a folder that goes away."""
    with tempfile.TemporaryDirectory(prefix="fuzz_") as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        yield path


TARGETS: dict[str, Target] = {
    "image": Target(image, seeds.images),
    "compressed_image": Target(compressed_image, seeds.compressed_images),
    "jpeg_or_png": Target(jpeg_or_png, seeds.picture_files),
    "detections": Target(detections, seeds.detections),
    "embeddings": Target(embeddings, seeds.embeddings),
    "vision_info": Target(vision_info, seeds.vision_infos),
    "diagnostics": Target(diagnostics, seeds.diagnostics),
    "label_info": Target(label_info, seeds.label_infos),
    "bundle": Target(bundle, lambda: [seeds.bundle_file()]),
    "bundle_document": Target(bundle_document, seeds.bundle_documents),
    "bag_mcap": Target(bag_mcap, seeds.mcap_files),
    "bag_sqlite3": Target(bag_sqlite3, seeds.sqlite3_files),
    "bag_metadata": Target(bag_metadata, seeds.bag_metadata),
    "idx": Target(idx, seeds.idx_files),
    "idx_gz": Target(idx_gz, lambda: [gzip.compress(data) for data in seeds.idx_files()]),
    "idx_packed": Target(idx_packed, seeds.idx_files),
    "annotations": Target(annotations, seeds.annotations),
    "image_file": Target(image_file, lambda: [*seeds.picture_files(), *seeds.other_pictures()]),
    "onnx_file": Target(onnx_file, seeds.onnx_files),
    "truth": Target(truth, seeds.truths),
    "settings": Target(settings, seeds.settings),
}
