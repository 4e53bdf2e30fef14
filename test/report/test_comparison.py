"""The sentence that says where the rule in use is not the best."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lla_fusion_ros.report.comparison import SINGLE_FRAME, where_not_best
from lla_fusion_ros.report.scoring import ScoreSink
from lla_fusion_ros.report.truth import Truth, TruthSpan
from lla_fusion_ros.stream.frames import FusedFrame
from lla_fusion_ros.types.settings import FusionSettings
from support.fused_frames import frame
from support.tiny_bundle import tiny_bundle


def test_what_is_better_is_named_with_both_numbers():
    parts = {
        "over all": {"pool": (0.99, 0.04), "vote": (0.98, 0.3)},
        "over lights": {"pool": (0.96, 0.2), "vote": (0.9685, 0.5), "last": (0.9, 0.15)},
    }
    assert where_not_best(parts, "pool") == (
        "pool is not the best everywhere: over lights vote is right more often (96.85%, 96.00%) "
        "and last has the lower NLL (0.1500, 0.2000)."
    )


@pytest.mark.parametrize("rival", [(0.9, 0.1), (0.9902, 0.03999), (0.99, 0.04)])
def test_a_rule_that_is_as_good_as_any_says_so(rival):
    told = where_not_best({"over all": {"pool": (0.99, 0.04), "vote": rival}}, "pool")
    assert told == "No other rule here is right more often than pool or has a lower NLL."


def test_classes_that_change_are_scored_by_themselves():
    bundle = tiny_bundle(classes=3, width=3)
    bundle = replace(bundle, meta=replace(bundle.meta, changing=("class 0",)))
    truth = Truth({"7": (TruthSpan(0, "class 0"),), "8": (TruthSpan(0, "class 1"),)})
    sink = ScoreSink(truth, bundle, FusionSettings(fuser="mean_pmf"))
    for index in range(3):
        fused = frame(index, ["7", "8"])
        pmf = np.array([[0.2, 0.5, 0.3], [0.1, 0.8, 0.1]])
        sink.take(
            0,
            FusedFrame(replace(fused.frame, track_ids=("7", "8")), replace(fused.result, pmf=pmf)),
        )
    used = sink.scores().of("mean_pmf")
    assert used.changing == pytest.approx((0.0, -np.log(0.2)))
    assert used.fixed == pytest.approx((1.0, -np.log(0.8)))
    single = sink.scores().of(SINGLE_FRAME)
    better = "where classes change single frame" in sink.scores().remark("mean_pmf")
    assert better == (single.changing[0] > 0 or single.changing[1] < used.changing[1])


def test_compared_rules_fuse_the_same_joined_tracks():
    """A track that has joined another shows what both saw, by every rule."""
    truth = Truth({name: (TruthSpan(0, "class 0"),) for name in ("left/1", "right/1")})
    bundle = tiny_bundle(classes=3, width=3)
    sink = ScoreSink(truth, bundle, FusionSettings(), ["pool"])
    alone = ScoreSink(truth, bundle, FusionSettings(), ["pool"])
    for index, name in enumerate(("left/1", "right/1")):
        fused = frame(index, [name])
        scene = replace(fused.frame, camera=name[:-2], track_ids=(name,))
        members = ("left/1", "right/1") if index else ()
        sink.take(0, FusedFrame(scene, replace(fused.result, members=(members,))))
        alone.take(0, FusedFrame(scene, fused.result))
    joined, parted = sink.scores(), alone.scores()
    assert joined.of("pool").nll != parted.of("pool").nll
    assert joined.of(SINGLE_FRAME) == parted.of(SINGLE_FRAME)
