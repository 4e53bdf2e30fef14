"""How wrong a sure view can be, and how often ordinary tracks look changed: the numbers of two hypotheses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.fusion import make_fuser
from lla_fusion_ros.fusion.along import views_of
from lla_fusion_ros.fusion.base import Fuser, SumFuser
from lla_fusion_ros.fusion.hypotheses import ChangeRates, Shown, shown_along
from lla_fusion_ros.fusion.learn import scored_pairs
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.warnings.model import AlarmTable

LAPSES = (0.001, 0.003, 0.01, 0.03)
BEFORE, AFTER = 10, 10  # views of each object where a track moves to another one
SWITCHED = 0.1  # weight of such tracks beside ordinary ones
NEVER = -30.0  # log-odds of a track that never looks changed
FEWEST = 10  # tracks that thresholds are measured on
STEPPED = ("logits", "features", "camera", "quality", "size")  # what a track has of each step


def with_changes(bundle: Bundle, tracks: TrackViews, fuser: Fuser | None = None) -> Bundle:
    """The bundle with the lapse of least loss and the thresholds of a change, by validation tracks.

    fuser: of the networks that saw the tracks, where these are not the bundle's own
    """
    own = fuser or bundle.fuser()
    if not isinstance(own, SumFuser):
        own = make_fuser("pool", own.posterior, bundle.meta.fusers.get("pool"))
    assert isinstance(own, SumFuser)
    known, reserved = tracks.take(tracks.label >= 0), len(bundle.reserved)
    switched, label = switching(known)
    losses = {}
    for lapse in LAPSES:
        rates = replace(bundle.change_rates(), lapse=lapse)
        of_switched = _switched_loss(own, switched, label, rates, reserved)
        losses[lapse] = _loss(own, known, rates, reserved) + SWITCHED * of_switched
    rates = replace(bundle.change_rates(), lapse=min(losses, key=losses.__getitem__))
    changes: dict[str, Any] = {"identity": rates.identity, "change": rates.change, "lapse": rates.lapse}
    if len(known) >= FEWEST:
        odds = shown(own, known, rates, reserved).odds
        largest = np.where(known.real, np.maximum(odds, NEVER), NEVER).max(axis=1)
        table = AlarmTable.measure_worst(largest, known.regime, known.source)
        changes["alarm"] = {"thresholds": list(table.thresholds), "tracks": table.tracks}
    return replace(bundle, meta=replace(bundle.meta, changes=changes))


def shown(fuser: SumFuser, tracks: TrackViews, rates: ChangeRates, reserved: int = 0) -> Shown:
    """What the engine shows of tracks after every view, and the log-odds of a change."""
    return shown_along(fuser, views_of(fuser.posterior, tracks), tracks.longest, rates, reserved=reserved)


def switching(tracks: TrackViews) -> tuple[TrackViews, np.ndarray]:
    """Tracks that move to an object of another class after BEFORE views, and that class."""
    rng = np.random.default_rng(0)
    second = np.flatnonzero(tracks.steps >= AFTER)
    pairs = []
    for track in np.flatnonzero(tracks.steps >= BEFORE):
        fits = (tracks.label[second] != tracks.label[track]) & (tracks.regime[second] == tracks.regime[track])
        if fits.any():
            pairs.append((track, rng.choice(second[fits])))
    first, second = np.array(pairs, np.intp).reshape(-1, 2).T
    head, tail = tracks.take(first), tracks.take(second)
    whole = {
        name: np.concatenate([array[:, :BEFORE], getattr(tail, name)[:, :AFTER]], axis=1)
        for name in STEPPED
        if (array := getattr(head, name, None)) is not None
    }
    return replace(head, **whole, steps=np.full(len(head), BEFORE + AFTER)), tail.label


def _loss(fuser: SumFuser, tracks: TrackViews, rates: ChangeRates, reserved: int) -> float:
    track, step, label = scored_pairs(tracks)
    right = shown(fuser, tracks, rates, reserved).pmf[track, step, label]
    return float(-np.log(np.maximum(right, 1e-12)).mean())


def _switched_loss(
    fuser: SumFuser, tracks: TrackViews, label: np.ndarray, rates: ChangeRates, reserved: int
) -> float:
    if not len(tracks):
        return 0.0
    right = shown(fuser, tracks, rates, reserved).pmf[np.arange(len(tracks)), BEFORE:, label]
    return float(-np.log(np.maximum(right, 1e-12)).mean())
