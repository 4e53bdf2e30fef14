"""Past or present: against a plain recursion, and what must hold on any track."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lla_fusion_ros.fusion import make_fuser
from lla_fusion_ros.fusion.hypotheses import Belief, ChangeRates, Hypotheses
from lla_fusion_ros.fusion.measure import measured
from lla_fusion_ros.types.views import Views
from support.tiny_posterior import make_posterior, make_views

TENTH, MOMENT = 100_000_000, 20_000_000
CLASSES = make_posterior().classes


def views_of(pmf: np.ndarray) -> Views:
    """Views of the tiny networks that all say this pmf.  [t, classes]"""
    posterior = make_posterior()
    logits = np.repeat(np.log(pmf)[:, None], posterior.networks, axis=1)
    return measured(Views(logits, make_views(posterior, len(pmf)).features), posterior)


def sure(*kinds: int, p: float = 0.95) -> np.ndarray:
    pmf = np.full((len(kinds), CLASSES), (1 - p) / (CLASSES - 1))
    pmf[np.arange(len(kinds)), kinds] = p
    return pmf


def hypotheses(
    rows: int = 1, rates: ChangeRates | None = None, changing: tuple[int, ...] = (), name: str = "pool", **how
) -> Hypotheses:
    fuser = make_fuser(name, make_posterior())
    chosen = np.isin(np.arange(CLASSES), changing)
    return Hypotheses(fuser, rates or ChangeRates(), chosen, rows, **how)


def see(tracks: Hypotheses, pmf: np.ndarray, stamp: int, camera: int = 0, others=()) -> Belief:
    return tracks.update(np.arange(len(pmf)), views_of(pmf), camera, stamp, others)


def recursion(fuser, pmfs: np.ndarray, rates: ChangeRates) -> tuple[np.ndarray, np.ndarray]:
    """The two run lengths written out, for one track that is seen ten times a second."""
    h, e, count = -np.expm1(-rates.identity / 10), rates.lapse, pmfs.shape[1]

    def fused(views: list[np.ndarray]) -> np.ndarray:
        state = fuser.initial(1)
        for view in views:
            state = fuser.update(state, views_of(view[None]))
        return fuser.predict(state)[0] if views else np.full(count, 1 / count)

    past, fresh, weight = [], [], [0.0, -np.inf]
    shown, odds = [], []
    for pmf in pmfs:
        floored = (1 - e) * fused([pmf]) + e / count
        if past:
            weight = [
                w + np.log(1 - h) + np.log(fused(pool) @ floored)
                for w, pool in zip(weight, (past, fresh), strict=True)
            ]
            anew = np.log(h) - np.log(count)
            if anew > weight[1]:
                fresh, weight[1] = [], anew
            fresh.append(pmf)
            weight = [w - np.logaddexp(*weight) for w in weight]
        past.append(pmf)
        odds.append(weight[1] - weight[0])
        c = 1 / (1 + np.exp(-odds[-1]))
        if c > 0.99 and len(fresh) >= 2:
            past, fresh, weight, c = fresh, [], [0.0, -np.inf], 0.0
        shown.append((1 - c) * fused(past) + (c * fused(fresh) if c else 0))
    return np.array(shown), np.array(odds)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000), name=st.sampled_from(["pool", "evidence_pool", "mean_pmf", "log_odds"]))
def test_one_track_is_the_plain_recursion(seed, name) -> None:
    rng = np.random.default_rng(seed)
    pmfs = rng.dirichlet(np.full(CLASSES, 0.4), 14).clip(1e-6)
    pmfs[:5, 0] += 2
    pmfs[5:10, 1] += 9
    pmfs /= pmfs.sum(axis=1, keepdims=True)
    tracks, rates = hypotheses(name=name), ChangeRates()
    beliefs = [see(tracks, pmf[None], (step + 1) * TENTH) for step, pmf in enumerate(pmfs)]
    shown, odds = recursion(make_fuser(name, make_posterior()), pmfs, rates)
    np.testing.assert_allclose([b.pmf[0] for b in beliefs], shown, atol=1e-9)
    np.testing.assert_allclose([b.odds[0] for b in beliefs], odds, atol=1e-7)


@settings(max_examples=30, deadline=None)
@given(
    before=st.integers(1, 300),
    p_before=st.floats(0.5, 0.999),
    p=st.floats(0.9, 0.999),
    name=st.sampled_from(["pool", "evidence_pool", "mean_pmf"]),
)
def test_whatever_was_before_five_views_of_another_class_show_it(before, p_before, p, name) -> None:
    tracks = hypotheses(name=name)
    for step in range(before):
        see(tracks, sure(0, p=p_before), (step + 1) * TENTH)
    for step in range(before, before + 5):
        belief = see(tracks, sure(1, p=p), (step + 1) * TENTH)
    assert belief.pmf[0].argmax() == 1


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000))
def test_the_order_of_cameras_within_a_moment_does_not_matter(seed) -> None:
    rng = np.random.default_rng(seed)
    frames = rng.dirichlet(np.full(CLASSES, 0.3), (6, 3)).clip(1e-6)
    frames /= frames.sum(axis=2, keepdims=True)
    found = []
    for order in itertools.permutations(range(3)):
        tracks = hypotheses()
        for moment, frame in enumerate(frames, start=1):
            for camera in order:
                belief = see(tracks, frame[[camera]], moment * TENTH + camera * MOMENT, camera)
            found.append((moment, belief.pmf[0], belief.odds[0]))
    for moment, pmf, odds in found:
        first = next(each for each in found if each[0] == moment)
        np.testing.assert_allclose(pmf, first[1], atol=1e-9)
        np.testing.assert_allclose(odds, first[2], atol=1e-7)


def test_a_changed_class_leads_with_its_first_frame_and_nothing_stale_is_sure() -> None:
    tracks = hypotheses(changing=(0, 1))
    for step in range(1, 40):
        see(tracks, sure(0, p=0.999), step * TENTH)
    first = see(tracks, sure(1, p=0.999), 40 * TENTH)
    assert first.pmf[0].argmax() == 1 and first.class_change[0]
    again = see(tracks, sure(1, p=0.999), 41 * TENTH)
    assert again.pmf[0, 1] > 0.9


def test_one_odd_frame_leads_at_no_time_and_restarts_nothing() -> None:
    tracks = hypotheses(name="evidence_pool")
    beliefs = [see(tracks, sure(int(step % 10 == 5)), step * TENTH) for step in range(1, 101)]
    assert not any(b.ended[0] for b in beliefs)
    assert max(b.pmf[0, 1] for b in beliefs) < 0.9


def test_a_late_view_is_added_to_both_pools_and_begins_nothing() -> None:
    late, never = hypotheses(), hypotheses()
    for step in (1, 2, 3, 4, 6, 7):
        for tracks in (late, never):
            before = see(tracks, sure(0), step * TENTH)
    after = late.update(np.array([0]), views_of(sure(1)), 0, 5 * TENTH)
    assert after.odds[0] == pytest.approx(before.odds[0]) and not after.ended[0]
    assert after.pmf[0, 1] > before.pmf[0, 1]


def test_a_gap_pays_the_hazard_of_its_seconds() -> None:
    odds = []
    for gap in (1, 50):
        tracks = hypotheses()
        for step in range(1, 6):
            see(tracks, sure(0), step * TENTH)
        odds.append(see(tracks, sure(1), (5 + gap) * TENTH).odds[0])
    rate = ChangeRates().identity
    chance = -np.expm1(-rate * np.array([0.1, 5.0]))
    assert odds[1] - odds[0] == pytest.approx(np.diff(np.log(chance / (1 - chance)))[0], abs=1e-6)


def test_without_restart_the_past_alone_is_shown() -> None:
    tracks, fuser = hypotheses(restart=False), make_fuser("pool", make_posterior())
    state = fuser.initial(1)
    for step in range(1, 30):
        pmf = sure(int(step > 15))
        state = fuser.update(state, views_of(pmf))
        belief = see(tracks, pmf, step * TENTH)
        np.testing.assert_allclose(belief.pmf, fuser.predict(state), atol=1e-12)
        assert not belief.ended[0]


def both(tracks: Hypotheses, step: int, left: np.ndarray, right: np.ndarray) -> Belief:
    """Two cameras look at one object in turn, each with a track of its own."""
    ours, theirs = np.array([0]), np.array([1])
    tracks.update(ours, views_of(left), 0, step * TENTH, [(np.array([0]), theirs)])
    return tracks.update(theirs, views_of(right), 1, step * TENTH + TENTH // 2, [(np.array([0]), ours)])


def test_joined_tracks_follow_a_change_together_and_tell_of_it_once() -> None:
    tracks, told = hypotheses(rows=2), 0
    for step in range(1, 21):
        pmf = sure(int(step > 12))
        left = tracks.update(np.array([0]), views_of(pmf), 0, step * TENTH, [(np.array([0]), np.array([1]))])
        right = tracks.update(
            np.array([1]), views_of(pmf), 1, step * TENTH + TENTH // 2, [(np.array([0]), np.array([0]))]
        )
        told += int(left.object_ended[0]) + int(right.object_ended[0])
        if step == 14:
            assert right.pmf[0].argmax() == 1
    assert told == 1 and right.pmf[0, 1] > 0.9


def test_cameras_that_contradict_each_other_leave_the_object_open() -> None:
    tracks = hypotheses(rows=2, name="evidence_pool")
    for step in range(1, 16):
        belief = both(tracks, step, sure(0, p=0.99), sure(1, p=0.99))
    assert not belief.object_ended[0] and belief.pmf[0].max() < 0.9


def test_a_joined_track_keeps_exactly_its_own() -> None:
    joined, alone = hypotheses(rows=2), hypotheses(rows=2)
    rng = np.random.default_rng(3)
    for step in range(1, 30):
        left, right = rng.dirichlet(np.full(CLASSES, 0.3), 2).clip(1e-6)[:, None]
        left, right = left / left.sum(), right / right.sum()
        belief = both(joined, step, left, right)
        alone.update(np.array([0]), views_of(left), 0, step * TENTH)
        own = alone.update(np.array([1]), views_of(right), 1, step * TENTH + TENTH // 2)
        np.testing.assert_array_equal(belief.own, own.pmf)


def test_the_probability_of_a_change_promises_no_more_than_comes_true() -> None:
    """Tracks with one change at a random time: views as wrong as they say."""
    rng = np.random.default_rng(0)
    count, steps = 2000, 30
    rates = ChangeRates(identity=0.3)
    change = rng.geometric(-np.expm1(-rates.identity / 10), count)
    first = rng.integers(0, CLASSES, count)
    second = (first + rng.integers(1, CLASSES, count)) % CLASSES
    tracks, c, changed = hypotheses(rows=count, rates=rates), [], []
    ended = np.zeros(count, bool)
    for step in range(steps):
        kind = np.where(step >= change, second, first)
        p = rng.uniform(0.5, 0.99, count)
        shown = np.where(rng.random(count) < p, kind, rng.integers(0, CLASSES, count))
        pmf = np.full((count, CLASSES), 1.0) * ((1 - p) / (CLASSES - 1))[:, None]
        pmf[np.arange(count), shown] = p
        belief = see(tracks, pmf, (step + 1) * TENTH)
        c.append(np.where(ended, np.nan, 1 / (1 + np.exp(-belief.odds))))
        changed.append(step >= change)
        ended |= belief.ended
    c, changed = np.concatenate(c), np.concatenate(changed)
    for low, high in ((0.5, 0.8), (0.8, 0.95), (0.95, 1.01)):
        rows = (c >= low) & (c < high)
        assert rows.sum() > 50
        assert changed[rows].mean() >= c[rows].mean() - 0.03
