"""Which track the figure of a survived mistake shows."""

import numpy as np

from lla_fusion_ros.lab.evaluation.fused import Fused, surviving_track


def fused_of(tops, sure=0.95, classes=3):
    tops = np.asarray(tops)
    pmf = np.full((*tops.shape, classes), (1 - sure) / (classes - 1))
    np.put_along_axis(pmf, tops[..., None], sure, axis=2)
    return Fused(pmf, np.full(len(tops), tops.shape[1]))


def test_a_confident_wrong_frame_that_fusion_ignores_is_found():
    alone = fused_of([[0, 0, 0, 0, 2, 0, 0], [0] * 7])
    found = surviving_track(alone, fused_of([[0] * 7, [0] * 7]), np.array([0, 0]))
    assert found is not None and (found.label, found.frame) == (0, 4)
    np.testing.assert_array_equal(found.alone.pmf[0], alone.pmf[0])


def test_a_track_that_fusion_loses_afterwards_does_not_count():
    alone = fused_of([[0, 0, 0, 0, 2, 0, 0]])
    assert surviving_track(alone, fused_of([[0, 0, 0, 0, 0, 2, 0]]), np.array([0])) is None


def test_a_doubtful_wrong_frame_does_not_count():
    alone = fused_of([[0, 0, 0, 0, 2, 0, 0]], sure=0.6)
    assert surviving_track(alone, fused_of([[0] * 7]), np.array([0])) is None
