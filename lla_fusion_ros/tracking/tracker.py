"""The built-in tracker of one camera: boxes without ids in, ids out.

Each track is a Kalman filter with constant velocity on the centre and the logarithm of the size, in message
time. All its noise is in units of the box, so it behaves alike for small and large boxes. Boxes and tracks
are matched one to one by the likelihood of the box under the prediction: unlike overlap, this still tells
neighbours apart when small boxes have moved by more than their size. Classes play no part: a class that
flickers must not tear a track.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from lla_fusion_ros.types.settings import check_settings, setting

NANOSECONDS = 1e9
# Standard deviations. A position counts in sides of the box, a size by its logarithm.
PIXEL = 0.7  # detectors round
MEASURED = np.array([0.07, 0.07, 0.09, 0.09])
FIRST_SPEED = np.array([3.0, 3.0, 0.7, 0.7])  # per second, of a box seen for the first time
PIXEL_SPEED = 50.0  # pixels per second on top
TURN_SPEED = 130.0  # ... and on top where nothing else fits: the vehicle may be turning
ACCELERATION = np.array([1.0, 1.0, 0.2, 0.2])  # per second to the power 1.5, for an agility of 1
# A box belongs to a track where it is likelier there than as a new object: -2 ln of the density of those, per
# box side squared and unit of log size squared. So a track whose place is hardly known takes no box at all.
NEW_OBJECT = -1.0
# ... and where it is no farther away, in variances. Tight: an object in two tracks costs certainty, two
# objects in one track cost truth.
FARTHEST = 9.0
UNSURE = 2.0  # variances by which an unsure box must be nearer than a sure one
FAR = 1e6  # the cost of what cannot be


@dataclass(frozen=True, slots=True)
class TrackerSettings:
    """Settings of the built-in tracker."""

    keep: float = setting(
        1.0, "seconds without a box after which a track ends and its id is not used again", 0.05, 60.0
    )
    sure: float = setting(
        0.5, "score from which a box begins a track; others only continue one; 0: every box does", 0.0, 1.0
    )
    confirm: int = setting(1, "boxes a track needs before it gets an id", 1, 100)
    agility: float = setting(
        2.0, "how quickly objects change their speed: 1 for steady ones, 10 for erratic ones", 0.1, 100.0
    )
    capacity: int = setting(200, "most boxes looked at in a frame, and most tracks kept", 1, 1000)
    clock_jump: float = setting(
        2.0, "seconds the stamps must go back to count as a clock jump, which ends all tracks", 0.1, 3600.0
    )

    def __post_init__(self) -> None:
        check_settings(self)


class Tracker:
    """Gives the boxes of one camera ids "1", "2", ...; an id is never used for a second track."""

    def __init__(self, settings: TrackerSettings | None = None) -> None:
        self.settings = settings or TrackerSettings()
        self._born = 0  # tracks so far
        self.reset()

    def reset(self) -> None:
        """End all tracks."""
        self._time: int | None = None  # stamp of the newest frame, to which all tracks are predicted
        self._number = np.empty(0, np.int64)  # 0 while not confirmed  [tracks]
        self._hits = np.empty(0, np.int64)
        self._seen = np.empty(0, np.int64)  # stamp of the last box
        # centre x, y in pixels, log width, log height; their speed per second  [tracks, 4]
        self._place, self._speed = np.empty((0, 4)), np.empty((0, 4))
        # variances of place and speed and their covariance  [tracks, 3, 4]
        self._variance = np.empty((0, 3, 4))

    @property
    def tracks(self) -> int:
        """Tracks alive, with an id or not yet."""
        return len(self._number)

    def update(self, stamp: int, boxes: np.ndarray, scores: np.ndarray | None = None) -> tuple[str, ...]:
        """The id of every box, "" for those that belong to no track: bad ones, unsure ones, too many.

        A frame behind the newest gets the ids of the tracks it fits and changes nothing.

        Args:
            stamp: message time, nanoseconds.
            boxes: cx, cy, w, h in pixels.                          [boxes, 4]
            scores: how sure the detector is, 0 to 1, if it says.   [boxes]
        """
        boxes = np.asarray(boxes, np.float64).reshape(-1, 4)
        rows = np.flatnonzero(usable_boxes(boxes))[: self.settings.capacity]
        found = np.concatenate([boxes[rows, :2], np.log(boxes[rows, 2:])], axis=1)
        sure = np.ones(len(rows), bool)
        if scores is not None:
            sure = np.asarray(scores, np.float64)[rows] >= self.settings.sure
        seconds = 0.0 if self._time is None else (stamp - self._time) / NANOSECONDS
        if seconds < -self.settings.clock_jump:
            self.reset()
        late = self._time is not None and stamp <= self._time
        numbers = (
            self._match_late(found, sure, seconds) if late else self._advance(stamp, found, sure, seconds)
        )
        ids = [""] * len(boxes)
        for row, number in zip(rows, numbers, strict=True):
            ids[row] = str(number) if number else ""
        return tuple(ids)

    def _match_late(self, found: np.ndarray, sure: np.ndarray, seconds: float) -> np.ndarray:
        """Track numbers of the boxes of a frame that is not newer than the newest.  [boxes]"""
        tracks = _match(found, sure, *self._predicted(seconds))
        return np.where(tracks >= 0, np.append(self._number, 0)[tracks], 0)

    def _advance(self, stamp: int, found: np.ndarray, sure: np.ndarray, seconds: float) -> np.ndarray:
        """Move all tracks to the frame's time, give them its boxes, begin new ones.  [boxes]"""
        self._place, self._variance = self._predicted(seconds)
        before, self._time = self._time, stamp
        self._take(stamp - self._seen <= self.settings.keep * NANOSECONDS)
        tracks = _match(found, sure, self._place, self._variance)
        self._match_young(tracks, found, sure, seconds, before)
        self._correct(tracks[tracks >= 0], found[tracks >= 0])
        new = np.flatnonzero((tracks < 0) & sure)
        tracks[new] = self.tracks + np.arange(len(new))
        self._begin(found[new])
        matched = tracks[tracks >= 0]
        self._hits[matched] += 1
        self._seen[matched] = stamp
        ripe = matched[(self._hits[matched] >= self.settings.confirm) & (self._number[matched] == 0)]
        self._number[ripe] = self._born + 1 + np.arange(len(ripe))
        self._born += len(ripe)
        numbers = np.where(tracks >= 0, np.append(self._number, 0)[tracks], 0)
        if self.tracks > self.settings.capacity:
            newest = np.argsort(-self._seen, kind="stable")[: self.settings.capacity]
            self._take(np.sort(newest))
        return numbers

    def _match_young(
        self, tracks: np.ndarray, found: np.ndarray, sure: np.ndarray, seconds: float, before: int | None
    ) -> None:
        """Tracks that began with the frame before, so that their speed is not known, get boxes left over."""
        free = (self._hits == 1) & (self._seen == before)
        free[tracks[tracks >= 0]] = False
        young, left = np.flatnonzero(free), np.flatnonzero(tracks < 0)
        variance = self._variance[young]
        variance[:, 0, :2] += (TURN_SPEED * seconds) ** 2
        variance[:, 1, :2] += TURN_SPEED**2 * seconds
        variance[:, 2, :2] += TURN_SPEED**2
        matched = _match(found[left], sure[left], self._place[young], variance, new_object=FAR)
        rows = np.flatnonzero(matched >= 0)
        tracks[left[rows]] = young[matched[rows]]
        self._variance[young[matched[rows]]] = variance[matched[rows]]

    def _predicted(self, seconds: float) -> tuple[np.ndarray, np.ndarray]:
        """Place and variance of all tracks so many seconds from the newest frame."""
        noise = (self.settings.agility * ACCELERATION * _unit(self._place)) ** 2
        span = abs(seconds)
        place, both, speed = self._variance[:, 0], self._variance[:, 1], self._variance[:, 2]
        variance = np.stack(
            [
                place + 2 * seconds * both + seconds**2 * speed + noise * span**3 / 3,
                both + seconds * speed + noise * span**2 / 2,
                speed + noise * span,
            ],
            axis=1,
        )
        return self._place + seconds * self._speed, variance

    def _correct(self, tracks: np.ndarray, found: np.ndarray) -> None:
        """The Kalman filter's update, each of the four coordinates by itself."""
        place, both, speed = np.moveaxis(self._variance[tracks], 1, 0)
        total = place + _measured(found)
        miss = found - self._place[tracks]
        self._place[tracks] += place / total * miss
        self._speed[tracks] += both / total * miss
        self._variance[tracks] = np.stack(
            [place - place**2 / total, both - place * both / total, speed - both**2 / total], axis=1
        )

    def _begin(self, found: np.ndarray) -> None:
        count = len(found)
        speed = (FIRST_SPEED * _unit(found)) ** 2
        speed[:, :2] += PIXEL_SPEED**2
        first = np.stack([_measured(found), np.zeros((count, 4)), speed], axis=1)
        self._place = np.concatenate([self._place, found])
        self._speed = np.concatenate([self._speed, np.zeros((count, 4))])
        self._variance = np.concatenate([self._variance, first])
        self._number = np.append(self._number, np.zeros(count, np.int64))
        self._hits = np.append(self._hits, np.zeros(count, np.int64))
        self._seen = np.append(self._seen, np.zeros(count, np.int64))

    def _take(self, tracks: np.ndarray) -> None:
        """Keep only these tracks."""
        for name in ("_number", "_hits", "_seen", "_place", "_speed", "_variance"):
            setattr(self, name, getattr(self, name)[tracks])


def usable_boxes(boxes: np.ndarray) -> np.ndarray:
    """Which boxes can be tracked: those that are finite and have a size.  [boxes]"""
    usable: np.ndarray = np.isfinite(boxes).all(axis=1) & (boxes[:, 2:] > 0).all(axis=1)
    return usable


def _unit(place: np.ndarray) -> np.ndarray:
    """What a coordinate is measured in: the side of the box for positions, 1 for logarithms.  [boxes, 4]"""
    side = np.exp(np.clip(place[:, 2:].mean(axis=1), -5, 12))[:, None]
    return np.concatenate([side, side, np.ones_like(side), np.ones_like(side)], axis=1)


def _measured(found: np.ndarray) -> np.ndarray:
    """The variance of measured boxes.  [boxes, 4]"""
    unit = _unit(found)
    return (MEASURED * unit) ** 2 + (PIXEL * unit / unit[:, :1]) ** 2


def _match(
    found: np.ndarray,
    sure: np.ndarray,
    place: np.ndarray,
    variance: np.ndarray,
    new_object: float = NEW_OBJECT,
) -> np.ndarray:
    """The track of every box, or -1; all at once, so that a sure box does not take an unsure one's track."""
    tracks = np.full(len(found), -1)
    if not len(place) or not len(found):
        return tracks
    total = variance[None, :, 0] + _measured(found)[:, None]  # [boxes, tracks, 4]
    distance = ((found[:, None] - place[None]) ** 2 / total).sum(axis=2)
    # -2 ln of the likelihood
    cost = distance + np.log(total / _unit(found)[:, None] ** 2).sum(axis=2)
    cost[~sure] += UNSURE
    cost = np.where((cost <= new_object) & (distance <= FARTHEST), cost, FAR)
    rows, columns = linear_sum_assignment(cost)
    real = cost[rows, columns] < FAR
    tracks[rows[real]] = columns[real]
    return tracks
