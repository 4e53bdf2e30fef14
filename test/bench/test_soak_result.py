"""What a soak run says about frames and growth."""

from __future__ import annotations

import struct
from collections import Counter

import numpy as np
import pytest

from bench.scene import counted_up, write_views
from bench.soak_result import balance, complaints, faster, slopes
from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.bundle.resources import find_model
from lla_fusion_ros.stream.perception import Perception
from lla_fusion_ros.types.settings import FusionSettings


def samples(
    memory_per_hour: float = 0.0, noise: float = 0.5, growing_threads: int = 0
) -> list[dict[str, float]]:
    rng = np.random.default_rng(0)
    return [
        {
            "seconds": 5.0 * step,
            "memory_mb": 300 + memory_per_hour * 5 * step / 3600 + rng.normal(0, noise),
            "handles": 18,
            "threads": 15,
            "p50_ms": 20 + rng.normal(),
            "p95_ms": 40 + rng.normal(),
            "watch_threads": 16 + growing_threads * step // 100,
        }
        for step in range(1, 361)
    ]


def test_a_leak_is_found_with_its_size_and_noise_is_not_one():
    leak = slopes(samples(100.0))["memory_mb"]
    assert leak["per_hour"] == pytest.approx(100, rel=0.05) and not leak["flat"]
    assert leak["low"] < leak["per_hour"] < leak["high"]
    assert all(slope["flat"] for slope in slopes(samples(noise=3.0)).values())


def test_what_the_watcher_holds_is_judged_like_the_node():
    told = complaints({"balance": balance(0, 0, {}, {}), "slopes": slopes(samples(growing_threads=1))})
    assert [sentence.split(" by ")[0] for sentence in told] == ["watch_threads grows"]


def test_every_frame_is_accounted_for_or_missed():
    before = {"left": {"fused_frames": 10, "waiting_images": 1}, "right": {}}
    after = {
        "left": {"fused_frames": 100, "dropped_queue_full": 5, "waiting_images": 0},
        "right": {"fused_frames": 96, "dropped_images_lost": 4, "images_without_detections": 1},
    }
    assert balance(195, 180, before, after)["uncounted"] == 0
    missed = balance(198, 180, before, after)
    assert missed["uncounted"] == 3
    told = complaints({"balance": missed, "slopes": slopes(samples())})
    assert told == ["3 frames were lost without being counted"]


def test_frames_of_views_are_accounted_for_too():
    after = {"left": {"fused_frames": 90, "dropped_views_without_embeddings": 3, "dropped_views_lost": 5}}
    assert balance(100, 90, {}, after)["uncounted"] == 2


@pytest.mark.parametrize(("own", "others"), [(0.4, 0.1), (0.6, 0.25), (0.7, 0.3)])
def test_the_node_takes_its_share_at_the_speed_that_is_found(own: float, others: float):
    factor = faster(own, others, 1.0, 0.8)
    assert factor * own / (1 - factor * others) == pytest.approx(0.8)
    assert faster(own, others, 0.9, 0.8) < 1, "frames were lost"


def test_a_crowd_stays_as_large_while_its_ids_count_up(tmp_path):
    bundle, alive, lives = load_bundle(find_model("signworld")), 300, 3
    with Bag(write_views(tmp_path / "views", bundle, 2, alive, lives)) as bag:
        messages = list(bag.messages())
    perception = Perception(
        bundle, None, ("camera1", "camera2"), fusion_settings=FusionSettings(capacity=alive)
    )
    seen: Counter[int] = Counter()
    for turn, message in ((turn, message) for turn in range(3) for message in messages):
        camera, _, topic = message.topic.strip("/").partition("/")
        data, now = bytearray(message.data), message.time + turn * 10**9
        data[4:12] = struct.pack("<iI", *divmod(now, 10**9))
        sent = counted_up(bytes(data), turn * alive) if topic == "views" else bytes(data)
        perception.offer(camera, topic, sent)
        for fused in perception.step():
            seen.update(map(int, fused.result.ids))
    assert perception.engine is not None and perception.engine.tracks == alive
    assert sorted(seen) == list(range(100, 1200))
    assert {seen[number] for number in range(alive, 900)} == {2 * lives}
    assert not {key: count for key, count in perception.tally.total().items() if key.startswith("dropped")}
