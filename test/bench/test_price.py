"""What the price is made of; no test here looks at how fast anything is."""

from __future__ import annotations

import numpy as np
import pytest

from bench.fusion import sign_crops
from bench.load_node import recorded
from bench.price import (
    FUSED,
    RUNS,
    STAGES,
    Load,
    bundles_of,
    draw_price,
    live_records,
    offline,
    overload_record,
)
from bench.scene import write_scene
from lla_fusion_ros.bundle import Bundle, load_bundle
from lla_fusion_ros.networks.classifier import Classifier


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return load_bundle("signworld")


@pytest.fixture(scope="module")
def bundles(bundle) -> dict[str, Bundle]:
    return bundles_of(bundle)


def turn(answered: int, cpu_s: float, latency: float) -> dict:
    return {"sent": 10, "answered": answered, "cpu_s": cpu_s, "latency_ms": [latency] * answered}


def test_the_plain_network_is_the_first_of_the_bundle(bundle, bundles):
    crops = sign_crops(2, 5, bundle.input_size)
    first = Classifier(bundle, "cpu", "float32", networks=(0,))(crops).logits
    for precision, most in (("float32", 1e-3), ("int8", 2.0)):
        alone = Classifier(bundles["plain"], "cpu", precision)
        assert (alone.engine, alone.precision, alone.networks) == ("onnxruntime", precision, 1)
        assert np.abs(alone(crops).logits - first).max() < most


def test_the_product_in_onnx_runtime_has_the_same_networks(bundle, bundles):
    crops = sign_crops(2, 5, bundle.input_size)
    same = Classifier(bundles["product onnx"], "cpu", "float32")
    assert (same.engine, same.networks) == ("onnxruntime", bundle.meta.networks)
    assert np.abs(same(crops).logits - Classifier(bundle, "cpu", "float32")(crops).logits).max() < 1e-3


def test_a_scene_has_the_wanted_cameras_and_objects(tmp_path):
    messages = recorded(write_scene(tmp_path / "bag", 3, 7, seconds=0.2))
    assert len(messages) == 2 * 3 * 2  # steps, cameras, an image and its boxes
    assert len({message.topic for message in messages}) == 2 * 3


def test_raw_images_of_a_scene_are_1080p(tmp_path):
    image, _ = recorded(write_scene(tmp_path / "bag", 1, 5, seconds=0.1, raw=True))
    assert image.type == "sensor_msgs/msg/Image"
    assert len(image.data) > 1920 * 1080 * 3


def test_a_replay_tells_the_cost_and_where_it_goes_and_is_drawn(tmp_path, bundles):
    bag = write_scene(tmp_path / "bag", 2, 3, seconds=0.2)
    rows = list(offline(bundles, bag, 3, 1, rounds=2))
    assert [row["run"] for row in rows] == list(RUNS)
    for row in rows:
        assert tuple(row["stages_ms"]) == STAGES
        assert all(row["stages_ms"][stage] > 0 for stage in STAGES if stage != "fuse")
        assert (row["stages_ms"]["fuse"] > 0) == (row["run"] in FUSED)
    assert rows[2]["of_plain"] == rows[3]["of_int8"] == 1
    own = {run: [turn(10, 0.1, 20.0), {}] for run in RUNS}
    draw_price([*rows, *live_records(own, Load(2, 3))], tmp_path / "price.png")
    assert (tmp_path / "price.png").stat().st_size > 1000


def test_live_ratios_are_those_within_a_turn():
    own = {
        "product": [turn(10, 0.2, 20.0), turn(10, 0.6, 40.0), {}],
        "plain": [turn(10, 0.1, 5.0), turn(10, 0.3, 5.0), {}],
        "plain int8": [turn(10, 0.05, 5.0), turn(5, 0.15, 5.0), {}],
    }
    product, plain, eight = live_records(own, Load(2, 5))
    assert (product["of_plain"], product["cpu_ms"], product["p50_ms"]) == (2, 8, 30)
    assert product["of_int8_quartiles"] == [2.5, 3.5]  # 4 and 2
    assert (plain["lost"], eight["lost"]) == (0, 0.25)


def test_overload_accounts_for_every_frame():
    before = {"a": {"fused_frames": 5, "dropped_queue_full": 1}, "b": {}}
    after = {"a": {"fused_frames": 9, "dropped_queue_full": 2}, "b": {"fused_frames": 3, "waiting_frames": 1}}
    found = overload_record([turn(7, 1.0, 50.0), {"before": before, "after": after}], Load(2, 5))
    assert (found["sent"], found["fused_frames"], found["dropped_queue_full"]) == (10, 7, 1)
    assert (found["fewest_of_a_camera"], found["most_of_a_camera"]) == (3, 4)
    assert (found["waiting_frames"], found["uncounted"]) == (1, 1)
