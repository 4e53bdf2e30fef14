"""New heads: the exact optimum, folds of whole groups, heads that never saw what they are calibrated on."""

import numpy as np
from scipy.optimize import check_grad, minimize

from lla_fusion_ros.lab.importing.head import Regression, cross_fit, folds_of
from lla_fusion_ros.types.pmf import softmax


def views(groups=6, tracks=8, width=5, seed=0):
    """Three classes that every group shows around places of its own.  features, label, track, group"""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), tracks * 2)
    track = np.repeat(np.arange(groups * tracks), 2)
    label = track % 3
    places = rng.normal(0, 0.3, (groups, width))[group]
    return np.eye(3, width)[label] * 2 + places + rng.normal(0, 0.5, places.shape), label, track, group


def test_a_head_is_the_minimum_of_the_penalised_likelihood():
    features, label, _, _ = views()
    phi = np.c_[features, np.ones(len(features))]

    def loss(flat):
        theta = flat.reshape(3, -1)
        return -np.log(softmax(phi @ theta.T)[np.arange(len(label)), label]).sum() + (theta**2).sum()

    def slope(flat):
        theta = flat.reshape(3, -1)
        return ((softmax(phi @ theta.T) - np.eye(3)[label]).T @ phi + 2 * theta).ravel()

    start = np.zeros(3 * phi.shape[1])
    assert check_grad(loss, slope, start + 0.1) < 1e-3
    oracle = minimize(loss, start, jac=slope, method="BFGS", options={"gtol": 1e-8}).x.reshape(3, -1)
    head = Regression(features, label, 3).fit(2.0)
    np.testing.assert_allclose(np.c_[head.weight, head.bias], oracle, atol=1e-4)


def test_folds_keep_groups_whole_and_are_nearly_equal():
    group = np.repeat(["a", "b", "c", "d", "e", "f", "g"], [40, 30, 10, 10, 9, 8, 1])
    fold = folds_of(group, 3)
    assert all(len(set(fold[group == name])) == 1 for name in set(group))
    assert np.bincount(fold).tolist() == [40, 31, 37]
    assert set(folds_of(np.array(["a", "b"]))) == {0, 1}


def test_heads_without_a_fold_are_those_of_the_other_folds():
    features, label, track, group = views()
    found = cross_fit(features, label, track, group, 3, 1, seed=1)
    penalty = found.heads[0].penalty
    assert len(found.left_out) == 5
    for number, (head,) in enumerate(found.left_out):
        rows = found.fold != number
        alone = Regression(features[rows], label[rows], 3).fit(penalty)
        np.testing.assert_allclose(head.weight, alone.weight, atol=1e-3)
    np.testing.assert_allclose(
        found.heads[0].weight, Regression(features, label, 3).fit(penalty).weight, atol=1e-3
    )
    several = cross_fit(features, label, track, group, 3, 2, seed=1)
    assert [len(heads) for heads in [several.heads, *several.left_out]] == [2] * 6
    assert np.abs(several.heads[0].weight - several.heads[1].weight).max() > 1e-3


def test_the_penalty_is_the_one_that_serves_groups_never_seen():
    """Places tell the class of the groups that were seen, and nothing of others."""
    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(10), 30)
    label = np.where(rng.random(300) < 0.9, group % 2, 1 - group % 2)
    features = np.c_[rng.normal(label, 1.0), rng.normal(0, 1, (10, 12))[group]]
    by_group, by_view = (
        cross_fit(features, label, np.arange(300), folds, 2, 1, 0) for folds in (group, np.arange(300))
    )
    assert by_group.heads[0].penalty > 3 * by_view.heads[0].penalty
