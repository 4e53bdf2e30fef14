"""How often ordinary tracks look changed: the thresholds of the odds of a change."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.fusion import make_fuser
from lla_fusion_ros.fusion.along import views_of
from lla_fusion_ros.fusion.base import Fuser, SumFuser
from lla_fusion_ros.fusion.hypotheses import ChangeRates, Shown, shown_along
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.warnings.model import AlarmTable

NEVER = -30.0  # log-odds of a track that never looks changed
FEWEST = 10  # tracks that thresholds are measured on


def with_changes(bundle: Bundle, tracks: TrackViews, fuser: Fuser | None = None) -> Bundle:
    """The bundle with the thresholds of a change, by validation tracks; the rates stay as they are.

    fuser: of the networks that saw the tracks, where these are not the bundle's own
    """
    own = fuser or bundle.fuser()
    if not isinstance(own, SumFuser):
        own = make_fuser("pool", own.posterior, bundle.meta.fusers.get("pool"))
    assert isinstance(own, SumFuser)
    known, rates = tracks.take(tracks.label >= 0), bundle.change_rates()
    changes = asdict(rates)
    if len(known) >= FEWEST:
        odds = shown(own, known, rates, len(bundle.reserved)).odds
        largest = np.where(known.real, np.maximum(odds, NEVER), NEVER).max(axis=1)
        table = AlarmTable.measure_worst(largest, known.regime, known.source)
        changes["alarm"] = {"thresholds": list(table.thresholds), "tracks": table.tracks}
    return replace(bundle, meta=replace(bundle.meta, changes=changes))


def shown(fuser: SumFuser, tracks: TrackViews, rates: ChangeRates, reserved: int = 0) -> Shown:
    """What the engine shows of tracks after every view, and the log-odds of a change."""
    return shown_along(fuser, views_of(fuser.posterior, tracks), tracks.longest, rates, reserved=reserved)
