"""Good inputs for every target, small, so that mutations reach deep into the parsers."""

from __future__ import annotations

import json
import tempfile
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.rosbag2.enums import CompressionFormat, CompressionMode

from lla_fusion_ros.bags.definitions import typestore
from lla_fusion_ros.bundle import save_bundle
from lla_fusion_ros.bundle.container import read_container
from lla_fusion_ros.messages import images as image_messages
from lla_fusion_ros.messages import status
from lla_fusion_ros.messages.cdr import Header
from lla_fusion_ros.messages.contract import COMPRESSED_IMAGE, DETECTIONS
from lla_fusion_ros.messages.detections import write_detections
from support.tiny_bundle import tiny_bundle

HEADER = Header(1_000_000_001, "camera")
BAG_MESSAGES = 6
PICTURE = (np.arange(7 * 9 * 3) * 5 % 256).astype(np.uint8).reshape(7, 9, 3)


def picture_files() -> list[bytes]:
    kinds = ((".jpg", PICTURE), (".png", PICTURE), (".png", PICTURE[..., 0]), (".png", PICTURE.astype("u2")))
    return [cv2.imencode(ending, picture)[1].tobytes() for ending, picture in kinds]


def other_pictures() -> list[bytes]:
    ppm = b"P6\n# comment\n9 7\n255\n" + PICTURE.tobytes()
    return [ppm, *(cv2.imencode(ending, PICTURE)[1].tobytes() for ending in (".bmp", ".webp", ".tiff"))]


def images() -> list[bytes]:
    arrays = {
        "bgr8": PICTURE,
        "rgba8": np.dstack([PICTURE, PICTURE[..., :1]]),
        "mono8": PICTURE[..., 0],
        "mono16": PICTURE[..., 0].astype(np.uint16),
        "rgb16": PICTURE.astype(np.uint16),
        "bayer_rggb8": PICTURE[:6, :8, 0],
        "yuv422": PICTURE[:6, :8, :2],
        "yuyv": PICTURE[:6, :8, :2],
    }
    return [image_messages.write_image(HEADER, array, encoding) for encoding, array in arrays.items()]


def compressed_images() -> list[bytes]:
    return [image_messages.write_compressed_image(HEADER, data, "jpeg") for data in picture_files()]


def detections() -> list[bytes]:
    rng = np.random.default_rng(0)
    boxes = rng.uniform(10, 400, size=(3, 5))
    ids = ["1", "zwei", "三"]
    return [
        write_detections(HEADER, [], np.zeros((0, 5))),
        write_detections(HEADER, ids, boxes),
        write_detections(HEADER, ids, boxes, rng.dirichlet(np.ones(7), size=3)),
    ]


def embeddings() -> list[bytes]:
    rows = np.arange(3 * 14, dtype=np.float32).reshape(3, 14)
    return [image_messages.write_image(HEADER, rows[:count], "32FC1") for count in (0, 1, 3)]


def vision_infos() -> list[bytes]:
    return [
        status.write_vision_info(HEADER, "lla_fusion_ros", place, 1)
        for place in ("sha256:" + "ab" * 32, "sha256:" + "cd" * 32, "")
    ]


def label_infos() -> list[bytes]:
    return [status.write_label_info(HEADER, names) for names in (["stop", "yield"], [])]


def diagnostics() -> list[bytes]:
    entry = status.Status(1, "track 7", "out of distribution", "front", {"p": "0.7", "entropy": "1.2"})
    return [status.write_diagnostics(HEADER, []), status.write_diagnostics(HEADER, [entry, entry])]


@lru_cache(maxsize=1)
def bundle_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.safetensors")
        save_bundle(tiny_bundle(classes=3, networks=2, size=16, width=4), path)
        return path.read_bytes()


def bundle_documents() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.safetensors")
        path.write_bytes(bundle_file())
        document = read_container(path)[0]
    changed = [
        {"networks": 1},
        {"class_names": "abc"},
        {"architecture": {"name": "dense", "size": 16}},
        {"default_fuser": "pool", "fusers": {"pool": {"alpha": 0.1}}},
    ]
    return [json.dumps({**document, **change}).encode() for change in ({}, *changed)]


def _bag(storage: StoragePlugin, compression: CompressionFormat | None) -> bytes:
    with tempfile.TemporaryDirectory() as name:
        writer = Writer(Path(name, "bag"), version=8, storage_plugin=storage)
        if compression is not None:
            writer.set_compression(CompressionMode.STORAGE, compression)
        with writer:
            for topic, kind, data in (
                ("/front/detections", DETECTIONS, detections()[1]),
                ("/front/image/compressed", COMPRESSED_IMAGE, compressed_images()[0]),
            ):
                connection = writer.add_connection(topic, kind, typestore=typestore())
                for step in range(BAG_MESSAGES // 2):
                    writer.write(connection, 1_000_000_000 + step, data)
        return next(file for file in Path(name, "bag").iterdir() if file.suffix != ".yaml").read_bytes()


@lru_cache(maxsize=1)
def mcap_file() -> bytes:
    return _bag(StoragePlugin.MCAP, None)


def mcap_files() -> list[bytes]:
    whole = mcap_file()
    return [whole, whole[: len(whole) // 2], _bag(StoragePlugin.MCAP, CompressionFormat.ZSTD)]


def sqlite3_files() -> list[bytes]:
    whole = _bag(StoragePlugin.SQLITE3, None)
    return [whole, whole[: len(whole) * 2 // 3]]


def bag_metadata() -> list[bytes]:
    return [
        b"rosbag2_bagfile_information:\n  version: 8\n  relative_file_paths: [bag_0.mcap]\n",
        b"rosbag2_bagfile_information:\n  relative_file_paths:\n    - ../bag_0.mcap\n    - /etc/passwd\n",
        b"rosbag2_bagfile_information: &a\n  relative_file_paths: ['..', '', *a, 2020-01-01]\n",
    ]


def idx_files() -> list[bytes]:
    labels = bytes([0, 0, 8, 1, 0, 0, 0, 5, 1, 2, 3, 4, 5])
    pictures = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3, *range(12)])
    return [labels, pictures]


def annotations() -> list[bytes]:
    head = b"Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId\n"
    return [
        head,
        head + b"00000_00000.ppm;29;30;5;6;24;25;3\n00000_00001.ppm;30;30;5;5;25;25;3\n",
        head + b"../../x_1.ppm;29;30;5;6;24;25;3\n",
    ]


def onnx_files() -> list[bytes]:
    """Of each kind of head and shape; with a function of its own."""
    from onnx import TensorProto, helper

    from support.small_networks import linear

    plain = linear(["n", 3, 8, 8])
    with_function = linear(["n", 8, 8, 3], TensorProto.FLOAT16)
    opset = helper.make_opsetid("", 17)
    steps = [helper.make_node("Relu", ["x"], ["y"])]
    with_function.functions.append(helper.make_function("own", "f", ["x"], ["y"], steps, [opset]))
    with_function.opset_import.append(helper.make_opsetid("own", 1))
    with_function.graph.node[3].op_type, with_function.graph.node[3].domain = "f", "own"
    return [plain.SerializeToString(), with_function.SerializeToString()]


def truths() -> list[bytes]:
    document = {
        "format": "lla_fusion_ros truth 1",
        "data_set": "signworld",
        "class_names": ["stop", "yield"],
        "tracks": {
            "7": [{"since": 0, "class": "stop"}, {"since": 5, "outside": True}],
            "8": [{"since": 10**18, "class": "yield", "outside": False}],
        },
    }
    box = {"box": [60.5, 40, 30, 30], "object": "7", "class": "stop"}
    frames = [
        {"camera": "left", "stamp": 0, "boxes": [box, {**box, "class": None}]},
        {"camera": "left", "stamp": 10**18, "boxes": []},
    ]
    by_boxes = {"format": "lla_fusion_ros truth 2", "class_names": ["stop"], "frames": frames}
    return [json.dumps(document).encode(), json.dumps(by_boxes).encode()]


def settings() -> list[bytes]:
    return [
        b'{"fuser": "pool", "window": 30, "max_lateness": 0.5, "clock_jump": 2.0, "warnings": true}',
        b'{"queue_depth": 4, "min_box_size": 1e999, "sync_tolerance": NaN, "capacity": 1e3}',
        b'{"model": "x", "device": "cpu", "silent_after": -Infinity, "identity": ["global"]}',
    ]
