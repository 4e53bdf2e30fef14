"""The built-in tracker on sign-world drives without ids, beside ByteTrack where `trackers` is installed.

    python bench/tracking.py                            # IDF1 and time, a few minutes
    python bench/tracking.py --model models/signworld.safetensors    # and fused NLL over that with true ids

Of the true boxes 10% are missed, all are jittered, and 5% false ones are added. IDF1 is computed here by one
assignment of tracks to objects, and by py-motmetrics where it is installed (the package needs neither). Truth
are the boxes the detector gave: a box that it missed is nobody's crop.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.optimize import linear_sum_assignment

from bench.drive import six_camera_drive
from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.engine.engine import FusionEngine, Observation
from lla_fusion_ros.images.crops import Pixels, check_boxes, cut_crops
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.signworld import CameraFrame, Conditions, Drive, DriveSettings
from lla_fusion_ros.tracking import Tracker, TrackerSettings

MISSED, FALSE, JITTER = 0.10, 0.05, 0.05
SIZE = (640, 480)
GAP = 1000 * 10**9  # ns between two drives


@dataclass(frozen=True)
class Noisy:
    """A frame as a mediocre detector gives it; `truth` is the object's id, "" for a false box."""

    frame: CameraFrame
    boxes: np.ndarray
    truth: tuple[str, ...]
    labels: np.ndarray
    scores: np.ndarray


def drives_again(frames: list[CameraFrame], draws: int) -> list[Noisy]:
    """The same drive several times, one after the other, each with mishaps and ids of its own."""
    return [
        replace(
            item,
            frame=replace(item.frame, stamp=item.frame.stamp + draw * GAP),
            truth=tuple(name and f"{draw}.{name}" for name in item.truth),
        )
        for draw in range(draws)
        for item in degrade(frames, seed=draw)
    ]


def degrade(frames: Iterable[CameraFrame], seed: int) -> list[Noisy]:
    """Boxes missed, jittered and added; false and hidden boxes have lower scores, with an overlap."""
    rng = np.random.default_rng(seed)
    noisy = []
    for frame in frames:
        kept = np.flatnonzero(rng.random(len(frame.ids)) >= MISSED)
        boxes = frame.boxes[kept]
        sides = boxes[:, 2:]
        boxes = np.concatenate(
            [
                boxes[:, :2] + sides * rng.normal(0, JITTER, sides.shape),
                sides * np.exp(rng.normal(0, JITTER, sides.shape)),
            ],
            axis=1,
        )
        false = rng.poisson(FALSE * len(kept))
        side = np.exp(rng.uniform(np.log(10), np.log(80), (false, 1)))
        extra = np.concatenate([rng.uniform((0, 0), SIZE, (false, 2)), side, side], axis=1)
        scores = np.concatenate([rng.beta(6, 2, len(kept)), rng.beta(3, 3, false)])
        noisy.append(
            Noisy(
                frame,
                np.concatenate([boxes, extra]),
                (*(frame.ids[row] for row in kept), *[""] * false),
                np.concatenate([frame.labels[kept], np.full(false, -1)]),
                scores,
            )
        )
    return noisy


def track(noisy: list[Noisy], settings: TrackerSettings, with_scores: bool) -> list[tuple[str, ...]]:
    """Ids of all frames, a tracker for each camera."""
    trackers: dict[str, Tracker] = {}
    ids = []
    for item in noisy:
        tracker = trackers.setdefault(item.frame.camera, Tracker(settings))
        own = tracker.update(item.frame.stamp, item.boxes, item.scores if with_scores else None)
        ids.append(tuple(f"{item.frame.camera}/{name}" if name else "" for name in own))
    return ids


def byte_track(noisy: list[Noisy], rate: float) -> list[tuple[str, ...]]:
    """The same with ByteTrack of the package `trackers`."""
    import supervision as sv
    from trackers import ByteTrackTracker

    trackers: dict[str, ByteTrackTracker] = {}
    ids = []
    for item in noisy:
        camera = item.frame.camera
        if camera not in trackers:
            trackers[camera] = ByteTrackTracker(frame_rate=rate, lost_track_buffer=int(rate))
        half = item.boxes[:, 2:] / 2
        edges = np.concatenate([item.boxes[:, :2] - half, item.boxes[:, :2] + half], axis=1)
        given = sv.Detections(
            xyxy=edges.astype(np.float32),
            confidence=item.scores.astype(np.float32),
            class_id=np.zeros(len(edges), int),
            data={"row": np.arange(len(edges))},
        )
        tracked = trackers[camera].update(given)
        own = [""] * len(edges)
        if len(tracked):
            for row, number in zip(tracked.data["row"], tracked.tracker_id, strict=True):
                if number is not None and number >= 0:
                    own[int(row)] = f"{camera}/{number}"
        ids.append(tuple(own))
    return ids


def idf1(truth: Iterable[tuple[str, str]]) -> float:
    """Of pairs (true id, given id) of boxes, "" for none: share of boxes under the best one-to-one naming."""
    pairs = list(truth)
    true = {name: row for row, name in enumerate(sorted({a for a, _ in pairs if a}))}
    given = {name: row for row, name in enumerate(sorted({b for _, b in pairs if b}))}
    shared = np.zeros((len(true), len(given)))
    for a, b in pairs:
        if a and b:
            shared[true[a], given[b]] += 1
    rows, columns = linear_sum_assignment(-shared)
    right = shared[rows, columns].sum()
    return float(2 * right / (sum(bool(a) for a, _ in pairs) + sum(bool(b) for _, b in pairs)))


def pairs_of(noisy: list[Noisy], ids: list[tuple[str, ...]]) -> list[tuple[str, str]]:
    """True and given id of every box; objects count in each camera by themselves."""
    return [
        (f"{item.frame.camera}/{a}" if a else "", b)
        for item, own in zip(noisy, ids, strict=True)
        for a, b in zip(item.truth, own, strict=True)
    ]


def motmetrics_idf1(noisy: list[Noisy], ids: list[tuple[str, ...]]) -> dict[str, float]:
    """The same by py-motmetrics; raises ImportError where it is not installed."""
    import motmetrics

    scores = motmetrics.MOTAccumulator(auto_id=True)
    numbers: dict[str, int] = {}  # it takes ids that are numbers

    def number(name: str) -> int:
        return numbers.setdefault(name, len(numbers))

    for item, own in zip(noisy, ids, strict=True):
        true = [number(f"{item.frame.camera}/{name}") for name in item.truth if name]
        given = [number(name) for name in own if name]
        # a box is only ever itself: distance 0 to its own truth, none to others
        same = [row for row, name in enumerate(item.truth) if name]
        boxes = [row for row, name in enumerate(own) if name]
        distance = np.where(np.equal.outer(same, boxes), 0.0, np.nan).reshape(len(true), len(given))
        scores.update(true, given, distance)
    names = ["idf1", "idp", "idr", "num_switches", "num_fragmentations"]
    summary = motmetrics.metrics.create().compute(scores, metrics=names, name="drive")
    return {name: float(summary.loc["drive", name]) for name in names}


class FusedNll:
    """Fuses the crops of a drive under any ids; the networks see each crop once."""

    def __init__(self, model: str, noisy: list[Noisy]) -> None:
        self._bundle = load_bundle(model)
        classifier = Classifier(self._bundle)
        self._views = []  # of every frame: rows of boxes that can be cropped, and their views
        for item in noisy:
            pixels = Pixels(item.frame.image, "rgb")
            check = check_boxes(item.boxes, pixels.shape, 1.0)
            rows = np.flatnonzero(check.keep)
            crops = cut_crops(pixels, check.boxes[rows], self._bundle.input_size, self._bundle.crop_margin)
            self._views.append((rows, classifier(crops) if len(rows) else None))

    def __call__(self, noisy: list[Noisy], ids: list[tuple[str, ...]]) -> dict[tuple[int, int], float]:
        """Frame and row of every box of a known class that was fused -> its NLL."""
        engine = FusionEngine(self._bundle)
        scores = {}
        for number, (item, own, (rows, views)) in enumerate(zip(noisy, ids, self._views, strict=True)):
            named = np.array([place for place, row in enumerate(rows) if own[row]], int)
            if views is None or not len(named):
                continue
            given = [own[rows[place]] for place in named]
            result = engine.update(Observation(item.frame.camera, item.frame.stamp, given, views.take(named)))
            for place, pmf in zip(named[result.kept], result.pmf, strict=True):
                label = item.labels[rows[place]]
                if label >= 0:
                    scores[number, int(rows[place])] = -float(np.log(max(pmf[label], 1e-12)))
        return scores


def drives(seconds: float) -> dict[str, Drive]:
    """Drives on which no constant of the tracker was chosen: day, dusk, half the rate, and a crowd."""
    plain = DriveSettings(seed=31, duration=seconds)
    dusk = Conditions(light=0.32, blur=1.1, smear=2.0, noise=0.03, jitter=0.05)
    return {
        "two cameras, day": Drive(plain),
        "two cameras, dusk": Drive(replace(plain, seed=32, conditions=dusk)),
        "two cameras, day, 5 Hz": Drive(replace(plain, seed=33, rate=5.0)),
        "six cameras, 20 signs each": six_camera_drive(seed=34, duration=seconds / 4),
    }


def report(name: str, noisy: list[Noisy], ids: list[tuple[str, ...]], cost: float) -> None:
    """One line of the table."""
    pairs = pairs_of(noisy, ids)
    text = f"  {name:26s} IDF1 {idf1(pairs):.4f}"
    try:
        scores = motmetrics_idf1(noisy, ids)
        text += f", motmetrics {scores['idf1']:.4f}, switches {scores['num_switches']:.0f}"
    except ImportError:
        pass
    unnamed = sum(bool(a) and not b for a, b in pairs) / max(1, sum(bool(a) for a, _ in pairs))
    print(f"{text}, without id {unnamed:.1%}, {cost:.0f} us a frame", flush=True)


def named_truly(noisy: list[Noisy]) -> list[tuple[str, ...]]:
    """Ids of an ideal tracker: false boxes get an id of their own."""
    return [
        tuple(f"{item.frame.camera}/{name or f'{row}-{at}'}" for at, name in enumerate(item.truth))
        for row, item in enumerate(noisy)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="length of each drive")
    parser.add_argument("--draws", type=int, default=2, help="mishaps are drawn so many times")
    parser.add_argument("--model", help="bundle for the fused NLL")
    parser.add_argument("--confirm", type=int, default=TrackerSettings().confirm)
    options = parser.parse_args()
    settings = TrackerSettings(confirm=options.confirm)
    for title, drive in drives(options.seconds).items():
        noisy = drives_again(list(drive), options.draws)
        boxes = sum(len(item.boxes) for item in noisy)
        print(f"{title}: {len(noisy)} frames, {boxes} boxes", flush=True)
        true = [tuple(f"{item.frame.camera}/{name}" if name else "" for name in item.truth) for item in noisy]
        runs: dict[str, Callable[[], list[tuple[str, ...]]]] = {
            "every box named truly": partial(named_truly, noisy),
            "built-in, no scores": partial(track, noisy, settings, False),
            "built-in, scores": partial(track, noisy, settings, True),
            "trackers.ByteTrackTracker": partial(byte_track, noisy, drive.settings.rate),
        }
        nll = FusedNll(options.model, noisy) if options.model else None
        with_true_ids = nll(noisy, true) if nll else {}
        for name, run in runs.items():
            try:
                start = time.perf_counter()
                ids = run()
            except ImportError as error:
                print(f"  {name}: not measured ({error})")
                continue
            report(name, noisy, ids, (time.perf_counter() - start) / len(noisy) * 1e6)
            if nll:
                own = nll(noisy, ids)
                both = own.keys() & with_true_ids.keys()
                mean, best = (np.mean([scores[key] for key in both]) for scores in (own, with_true_ids))
                ratio = f"{mean / best:.3f} of {best:.4f} with true ids, {len(both)} boxes"
                print(f"    fused NLL {mean:.4f}: {ratio}", flush=True)


if __name__ == "__main__":
    main()
