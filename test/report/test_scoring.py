"""Scores of a replay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from replay.scenes import START, STEP, write_scene

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import find_cameras
from lla_fusion_ros.replay.replay import ReplayOptions, replay
from lla_fusion_ros.report.scoring import SINGLE_FRAME, ScoreSink
from lla_fusion_ros.report.truth import Truth, TruthSpan
from lla_fusion_ros.stream.frames import FusedFrame
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.metrics import accuracy, ece, nll
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.warnings.result import CANNOT_TELL, REASONS
from support.fused_frames import frame
from support.tiny_bundle import tiny_bundle

TRUTH = Truth(
    {
        "track 0": (TruthSpan(START, "class 0"),),
        "track 1": (TruthSpan(START, "class 1"), TruthSpan(START + 6 * STEP, "class 2")),
        "track 2": (TruthSpan(START, None),),
    }
)
GLOBAL = ReplayOptions(stream=StreamSettings(identity="global"))  # one id is one object in both cameras


class Kept:
    def __init__(self):
        self.pmf, self.label = [], []

    def take(self, time, fused):
        for track, pmf in zip(fused.result.ids, fused.result.pmf, strict=True):
            name = TRUTH.class_at(track, fused.frame.header.stamp).class_name
            if name is not None:
                self.pmf.append(pmf)
                self.label.append(int(name.split()[1]))


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    path = write_scene(tmp_path_factory.mktemp("scene") / "drive")
    bundle = tiny_bundle()
    sink = ScoreSink(TRUTH, bundle, FusionSettings(), ["last", "vote", "mean_pmf"])
    kept = Kept()
    with Bag(path) as bag:
        replay(bag, find_cameras(bag.summary), bundle, GLOBAL, [kept, sink])
    return sink.scores(), np.array(kept.pmf), np.array(kept.label)


def test_the_scores_are_those_of_the_whole_pmfs(scored):
    scores, pmf, label = scored
    used = scores.of("mean_pmf")
    assert used.views == len(label) == 48
    assert used.accuracy == pytest.approx(accuracy(pmf, label))
    assert used.nll == pytest.approx(nll(pmf, label), rel=1e-5)
    assert used.ece == pytest.approx(ece(pmf, label), abs=1e-5)


def test_single_frames_and_every_compared_fuser_are_scored(scored):
    scores, _, _ = scored
    assert [each.fuser for each in scores.fusers] == [SINGLE_FRAME, "mean_pmf", "last", "vote"]
    assert scores.of("last").accuracy == scores.of(SINGLE_FRAME).accuracy
    assert set(scores.reliability) == {SINGLE_FRAME, "mean_pmf", "last", "vote"}


def test_unknown_objects_and_switches_are_counted(scored):
    warnings = scored[0].warnings
    assert (warnings.outside, warnings.switches, warnings.inside) == (1, 1, 1)
    assert warnings.missed == 2 - warnings.raised


def test_a_truth_of_other_classes_is_refused():
    with pytest.raises(InputError, match="knows 0 of the 1 classes"):
        ScoreSink(Truth({"1": (TruthSpan(0, "zebra"),)}), tiny_bundle(), FusionSettings())


def test_a_class_change_is_told_of_and_is_no_switch_and_no_false_alarm():
    """The same track shows class 0, then class 1; only what the truth and the bundle call changing counts."""
    bundle = tiny_bundle()
    names = ("class 0", "class 1")
    spans = Truth({"7": (TruthSpan(START, names[0]), TruthSpan(START + 3 * STEP, names[1]))})
    for changing, seen in ((names, (1, 1, 0, 1)), ((), (0, 0, 1, 0))):
        own = replace(bundle, meta=replace(bundle.meta, changing=changing, class_names=(*names, "class 2")))
        sink = ScoreSink(spans, own, FusionSettings(fuser="mean_pmf"))
        for index in range(6):
            fused = frame(index, ["7"])
            restarted = ("7",) if index == 4 else ()
            result = replace(fused.result, restarted=restarted, changed=restarted if changing else ())
            scene = replace(fused.frame, track_ids=("7",))
            sink.take(0, FusedFrame(scene, result))
        told = sink.scores().warnings
        assert (told.changes, told.changes_seen, told.switches, told.inside) == seen
        assert told.false_alarms == 0 and told.switches_seen == told.switches


def test_what_nobody_can_tell_is_counted_by_itself(scored):
    sink = ScoreSink(Truth({"7": (TruthSpan(START, "class 0"),)}), tiny_bundle(), FusionSettings())
    fused = frame(0, ["7"])
    raised = np.zeros((1, len(REASONS)), bool)
    raised[0, REASONS.index(CANNOT_TELL)] = True
    verdicts = replace(fused.result.verdicts, raised=raised)
    sink.take(0, FusedFrame(replace(fused.frame, track_ids=("7",)), replace(fused.result, verdicts=verdicts)))
    told = sink.scores().warnings
    assert (told.cannot_tell, told.false_alarms, told.inside) == (1, 0, 1)
