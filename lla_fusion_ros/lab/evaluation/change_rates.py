"""Glitches, abrupt and gradual changes under one id, at 10 Hz: what a vehicle would show of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.engine.engine import FusionEngine, Observation
from lla_fusion_ros.lab.datasets import TrackSet, cut
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.views import Views
from lla_fusion_ros.warnings.result import IDENTITY_SWITCH, REASONS

FRAME = 100_000_000  # nanoseconds
SURE = 0.9
PAIRS = 50  # of objects of different classes
SWITCH = REASONS.index(IDENTITY_SWITCH)


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is shown under one id.

    Attributes:
        steps: frames.
        share: of the second object in the picture of a frame, by its number.
        judged: the frame with which the second object must be shown; None where it never should.
        changing: whether all classes are ones that change.
    """

    name: str
    steps: int
    share: Callable[[int], float]
    judged: int | None
    changing: bool = False


SCENARIOS = (
    Scenario("one wrong frame a second, 20 s", 200, lambda step: float(step % 10 == 5), None),
    Scenario("abrupt change, after 5 frames", 35, lambda step: float(step >= 30), 34),
    Scenario("fade over 3 s, 2 s after its end", 80, lambda step: float(np.clip((step - 29) / 30, 0, 1)), 79),
    Scenario("class change, after 5 frames", 35, lambda step: float(step >= 30), 34, True),
)


def change_rates(
    bundle: Bundle,
    classify: Callable[[np.ndarray], Views],
    known: TrackSet,
    seed: int,
    stage: Callable[[str], None],
) -> list[dict[str, Any]]:
    """One record for each of SCENARIOS; a track longer than its frames is shown to and fro."""
    pairs = _pairs(known, seed)
    if not pairs:
        return []
    shown = [[_crops(bundle, known, track) for track in side] for side in zip(*pairs, strict=True)]
    label = [np.array([known.tracks[track].label for track in side]) for side in zip(*pairs, strict=True)]
    records = []
    for scenario in SCENARIOS:
        stage(scenario.name)
        images = (_pictures(shown, scenario, step) for step in range(scenario.steps))
        records.append({"scenario": scenario.name, **_shown(bundle, classify, images, scenario, *label)})
    return records


def _pairs(known: TrackSet, seed: int) -> list[tuple[int, int]]:
    """Tracks, each with one of another class; the longest there are."""
    rng = np.random.default_rng(seed)
    order = sorted(rng.permutation(len(known.tracks)), key=lambda i: -len(known.tracks[i].frames))
    half = max(len(known.tracks[i].frames) for i in order) / 2
    usable = [int(i) for i in order if len(known.tracks[i].frames) >= half]
    pairs = []
    for first in usable[:PAIRS]:
        others = [i for i in usable if known.tracks[i].label != known.tracks[first].label]
        if others:
            pairs.append((first, int(rng.choice(others))))
    return pairs


def _crops(bundle: Bundle, known: TrackSet, track: int) -> np.ndarray:
    """[frames, S, S, 3]"""
    alone = replace(known, tracks=(known.tracks[track],))
    return cut(alone, bundle.input_size, bundle.crop_margin).images


def _pictures(shown: list[list[np.ndarray]], scenario: Scenario, step: int) -> np.ndarray:
    """What the camera sees of every pair: one, the other, or both blended.  [pairs, S, S, 3] uint8"""
    share = scenario.share(step)
    one, other = (np.stack([crops[_to_and_fro(step, len(crops))] for crops in side]) for side in shown)
    return np.round((1 - share) * one + share * other).astype(np.uint8)


def _to_and_fro(step: int, frames: int) -> int:
    place = step % max(2 * frames - 2, 1)
    return min(place, 2 * frames - 2 - place)


def _shown(
    bundle: Bundle,
    classify: Callable[[np.ndarray], Views],
    images: Iterator[np.ndarray],
    scenario: Scenario,
    first: np.ndarray,
    second: np.ndarray,
) -> dict[str, Any]:
    engine = FusionEngine(bundle, FusionSettings(changing_classes="all" if scenario.changing else ""))
    ids = [f"t{i}" for i in range(len(first))]
    restarts = changes = wrong = unwarned = errors = frames = 0
    followed = 0.0
    for step, pictures in enumerate(images):
        result = engine.update(Observation("front", (step + 1) * FRAME, ids, classify(pictures)))
        top, sure = result.pmf.argmax(axis=1), result.pmf.max(axis=1) >= SURE
        restarts, changes = restarts + len(result.restarted), changes + len(result.changed)
        errors += int(result.verdicts.raised[:, SWITCH].sum())
        frames += len(ids)
        odd = sure & (top == second) & (scenario.judged is None)
        wrong, unwarned = wrong + int(odd.sum()), unwarned + int((odd & (result.verdicts.level == 0)).sum())
        if step == scenario.judged:
            followed = float((top == second).mean())
    return {
        "pairs": len(ids),
        "frames": frames,
        "restarts": restarts,
        "class_changes": changes,
        "switch_warned_frames": errors,
        "sure_of_the_wrong_one": wrong,
        "and_unwarned": unwarned,
        "followed": None if scenario.judged is None else followed,
    }
