"""What the messages say, read back from their bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lla_fusion_ros.engine.engine import FusionEngine, Observation
from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.cdr import CdrReader, Header
from lla_fusion_ros.messages.status import ERROR, OK, Status, parse_diagnostics
from lla_fusion_ros.stream.frame_messages import fused_messages, label_message
from lla_fusion_ros.stream.frames import FusedFrame, ViewFrame
from lla_fusion_ros.types.views import Views
from lla_fusion_ros.warnings.result import OUT_OF_DISTRIBUTION, REASONS
from support.tiny_bundle import tiny_bundle

HEADER = Header(1_000_000_000_000, "left")


@pytest.fixture(scope="module")
def bundle():
    return tiny_bundle()


@pytest.fixture
def fused(bundle) -> FusedFrame:
    """Two tracks of one frame, neither of them warned of."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(2, bundle.networks, bundle.posterior().features)).astype(np.float32)
    views = Views(rng.normal(size=(2, bundle.networks, bundle.classes)).astype(np.float32), features)
    result = FusionEngine(bundle).update(Observation("left", HEADER.stamp, ("7", "8"), views))
    return FusedFrame(ViewFrame("left", HEADER, ("7", "8"), np.zeros((2, 5)), views, ("7", "8")), result)


def warned(fused: FusedFrame) -> FusedFrame:
    """The same with the second track called out of distribution, and a third that was and no longer is."""
    raised = np.array([[False] * len(REASONS), [reason == OUT_OF_DISTRIBUTION for reason in REASONS]])
    verdicts = replace(fused.result.verdicts, level=np.array([OK, ERROR]), raised=raised)
    return FusedFrame(fused.frame, replace(fused.result, verdicts=verdicts, cleared=("9",)))


def statuses(fused: FusedFrame, bundle) -> tuple[Status, ...]:
    messages = {message.topic: message.data for message in fused_messages(fused, bundle.class_names)}
    header, listed = parse_diagnostics(messages[contract.OOD_WARNINGS])
    assert header == HEADER
    return listed


def test_without_warnings_only_the_fused_classes_are_sent(fused, bundle):
    assert [message.topic for message in fused_messages(fused, bundle.class_names)] == [
        contract.FUSED_CLASSES
    ]


def test_a_warned_track_has_one_status_with_all_that_the_contract_lists(fused, bundle):
    _, warning = statuses(warned(fused), bundle)
    assert (warning.name, warning.level, warning.hardware_id) == ("track 8", ERROR, "left")
    top = int(fused.result.pmf[1].argmax())
    assert warning.values["top class"] == bundle.class_names[top]
    assert float(warning.values["p"]) == pytest.approx(fused.result.pmf[1, top], abs=1e-6)
    assert warning.values["reason"] == OUT_OF_DISTRIBUTION
    assert warning.values["views per camera"] == "left=1"
    numbers = ("entropy", "normalised entropy", "mutual information", "consistency")
    assert all(np.isfinite(float(warning.values[key])) for key in numbers)
    assert "thresholds" in warning.values and "trained" in warning.message


def test_a_track_whose_warning_ended_is_said_to_be_well_once(fused, bundle):
    cleared, _ = statuses(warned(fused), bundle)
    assert (cleared.name, cleared.level) == ("track 9", OK)


def test_labels_are_latched_under_their_own_topic(bundle):
    message = label_message(bundle.class_names, 5)
    assert (message.topic, message.type) == ("fused_classes/label_info", contract.LABEL_INFO)
    reader = CdrReader(message.data)
    assert reader.header() == Header(5, "") and reader.u32() == bundle.classes
