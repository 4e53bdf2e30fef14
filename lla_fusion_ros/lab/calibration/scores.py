"""A bundle for a detector's scores, from a recording whose truth is known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lla_fusion_ros import __version__
from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.topics import find_cameras, name_cameras
from lla_fusion_ros.bundle import Bundle, make_bundle
from lla_fusion_ros.bundle.bundle import PMF_FUSERS, SCORES
from lla_fusion_ros.bundle.score_bundle import bundle_of, score_bundle, score_meta, score_tensors
from lla_fusion_ros.fusion.along import views_of
from lla_fusion_ros.lab.calibration.assemble import Stage
from lla_fusion_ros.lab.calibration.changes import with_changes
from lla_fusion_ros.lab.calibration.fusers import choose_default, fit_fuser, score_tracks
from lla_fusion_ros.reliance.statements import calibrate
from lla_fusion_ros.replay.sources import bag_views, make_perception, named_classes
from lla_fusion_ros.report.truth import OUTSIDE, Judge, Truth
from lla_fusion_ros.stream.frames import ViewFrame
from lla_fusion_ros.stream.stream_settings import StreamSettings
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.pmf import about_classes
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.track_views import TrackViews
from lla_fusion_ros.warnings.fit import CAMERA_SPAN
from lla_fusion_ros.warnings.fit_contradiction import fit_camera
from lla_fusion_ros.warnings.model import NEVER, Detector, FeatureSpace, WarningModel
from lla_fusion_ros.warnings.model import SCORES as SCORE_NAMES
from lla_fusion_ros.warnings.scores import evidence

FEWEST_TRACKS, FEWEST_OBJECTS = 20, 10  # of known classes, to fit anything on
CANDIDATES = ("pool", "log_odds", "ema", "mean_pmf")  # none that takes frames for independent
FOLDS = 5


def calibrated_scores(
    path: Path, truth: Truth, stage: Stage, cameras: Sequence[str] = (), seed: int = 0
) -> tuple[Bundle, tuple[str, ...]]:
    """What is mistaken for what, the numbers of the fusers, and the thresholds of contradictions.

    Also notes on how much of the recording the truth speaks of.
    """
    with Bag(path) as bag:
        named = list(cameras)
        wiring = name_cameras(bag.summary, named, False) if named else find_cameras(bag.summary, False)
        if not wiring.cameras:
            raise InputError(f"'{path}' has no detections to calibrate on: {'; '.join(wiring.missing)}")
        stage("reading the detections", 0, 0)
        met = named_classes(score_bundle(), bag, wiring.cameras)
        said, class_names = names_of_classes(met, truth)
        meta = score_meta(tuple(class_names), {"name": SCORES, "said": list(said)})
        bundle = bundle_of(meta)
        tracks, notes = read_tracks(bag, wiring.cameras, bundle, truth)
        confusion = learned_confusion(tracks, bundle) if truth.frames else None
        bundle = bundle_of(meta, confusion)
        tracks, notes = read_tracks(bag, wiring.cameras, bundle, truth)
    data = {"name": truth.data_set or path.name}
    return _fitted(bundle, tracks, confusion, data, stage, seed), notes


def names_of_classes(met: Sequence[str], truth: Truth) -> tuple[list[str], list[str]]:
    """What messages call the classes, and what they are: the same, or numbers of the truth's class names."""
    true = list(truth.class_names) or sorted(truth.named)
    if all(name.isdigit() and int(name) < len(true) for name in met) and not set(met) & set(true):
        return [str(number) for number in range(len(true))], true
    if not set(met) & set(true):
        raise InputError(
            f"the detections name {', '.join(met[:4])} ..., the truth {', '.join(true[:4])} ...: they share "
            "no class; write the truth with the detector's names"
        )
    names = [*true, *(name for name in met if name not in true)]
    return names, names


def read_tracks(bag: Bag, cameras: Any, bundle: Bundle, truth: Truth) -> tuple[TrackViews, tuple[str, ...]]:
    """The tracks that are one known class wherever the truth speaks of them, or nothing.

    Their views at other stamps belong to them; of an object's track those that match no object do not. Also
    notes on what was left out.
    """
    perception = make_perception(bundle, cameras, StreamSettings(), FusionSettings())
    numbers = {name: number for number, name in enumerate(bundle.class_names)}
    rows: dict[str, list[tuple[np.ndarray, int, float]]] = defaultdict(list)
    wrong: dict[str, list[tuple[np.ndarray, int, float]]] = defaultdict(list)  # what matches no object
    labels: dict[str, set[int]] = defaultdict(set)
    objects: dict[str, str] = {}  # the first that a track shows
    judge = Judge(truth)
    frames: Iterable[list[ViewFrame]] = bag_views(bag, cameras, perception, bundle)
    for frame in (each for batch in frames for each in batch):
        camera = perception.cameras.index(frame.camera)
        judged = judge(frame)
        for row, (name, label) in enumerate(zip(frame.ids, judged.labels(numbers).tolist(), strict=True)):
            side = np.nan if frame.views.size is None else frame.views.size[row]
            view = frame.views.logits[row], camera, side
            (wrong if judged.nothing[row] else rows)[name].append(view)
            if (shown := judged.shown[row]) is not None:
                labels[name].add(label)
                objects.setdefault(name, shown.object if truth.frames else name)
    kept = [name for name in rows if len(labels[name]) == 1 and OUTSIDE not in labels[name]]
    if not any(label >= 0 for own in labels.values() for label in own):
        raise InputError(judge.why_nothing())
    known = len({objects[name] for name in kept})
    if len(kept) < FEWEST_TRACKS or known < FEWEST_OBJECTS:
        raise InputError(
            f"the truth knows {len(kept)} of the {len(rows)} tracks in the bag, of {known} objects; "
            f"{FEWEST_TRACKS} of {FEWEST_OBJECTS} objects are needed to calibrate on"
        )
    if bundle.reserved:
        for name in [name for name in wrong if not labels[name]]:
            rows[name] = wrong[name] + rows[name]
            labels[name], objects[name] = {len(bundle.named_classes)}, name
            kept.append(name)
    steps = np.array([len(rows[name]) for name in kept])
    logits = np.zeros((len(kept), steps.max(), 1, bundle.classes), np.float32)
    of_camera = np.zeros(logits.shape[:2], np.int64)
    size = np.full(logits.shape[:2], np.nan, np.float32)
    for track, name in enumerate(kept):
        logits[track, : steps[track]] = [view for view, _, _ in rows[name]]
        of_camera[track, : steps[track]] = [index for _, index, _ in rows[name]]
        size[track, : steps[track]] = [side for _, _, side in rows[name]]
    features = np.zeros((*logits.shape[:3], 2), np.float32)
    features[..., 1] = 1.0
    label = np.array([next(iter(labels[name])) for name in kept])
    source = np.unique([objects[name] for name in kept], return_inverse=True)[1]
    views = TrackViews.of_one_camera(logits, features, steps, label, source)
    notes = judge.notes
    if bad := perception.tally.total()["dropped_bad_scores"]:
        what = "; ".join(perception.troubles().values())
        notes = (*notes, f"{bad} messages of detections are left out: {what}")
    return replace(views, camera=of_camera, size=size), notes


def learned_confusion(tracks: TrackViews, bundle: Bundle) -> np.ndarray:
    """How the truth is spread where the detector is wrong, by what it says.  [said, true]

    Before anything was seen, nothing is there as often as all classes together.
    """
    logits, _, label = tracks.flat()
    named = len(bundle.named_classes)
    counts = np.full((bundle.classes,) * 2, 0.5 / named)
    counts[:, named:] = 0.5
    np.add.at(counts, (logits[:, 0, :named].argmax(axis=1), label), 1.0)
    np.fill_diagonal(counts, 0.0)
    return counts / counts.sum(axis=1, keepdims=True)


def _fitted(
    bundle: Bundle,
    tracks: TrackViews,
    confusion: np.ndarray | None,
    dataset: dict[str, Any],
    stage: Stage,
    seed: int,
) -> Bundle:
    posterior = bundle.posterior()
    views = views_of(posterior, tracks)
    values = {}
    for done, name in enumerate(PMF_FUSERS):
        stage("fusers", done, len(PMF_FUSERS))
        values[name] = fit_fuser(name, tracks, views)
    choice = choose_default(posterior, tracks, candidates=CANDIDATES, folds=FOLDS, seed=seed)
    reliance = calibrate(choice.pmf, tracks.real, tracks.label, tracks.regime, tracks.source)
    stage("thresholds of contradictions", 0, 0)
    model = contradictions(views.mean_pmf, tracks, bundle.classes, seed, len(bundle.reserved))
    arrays, record = model.to_parts()
    meta = replace(
        bundle.meta,
        fusers=values,
        default_fuser=choice.name,
        warnings=record,
        reliance=reliance.as_dict(),
        dataset={**dataset, "tracks": len(tracks)},
        package_version=__version__,
    )
    done_bundle = with_changes(make_bundle(meta, score_tensors(meta, confusion), posterior, arrays), tracks)
    validation = score_tracks(done_bundle.fuser(), tracks, reserved=len(bundle.reserved))
    scores = {"validation": validation, "nll_by_fuser": choice.nll}
    return replace(done_bundle, meta=replace(done_bundle.meta, scores=scores))


def contradictions(
    mean_pmf: np.ndarray, tracks: TrackViews, classes: int, seed: int, reserved: int = 0
) -> WarningModel:
    """A warning model of contradicting cameras only: what is unknown cannot be told without features."""
    shape = (len(tracks), tracks.longest)
    said = evidence(about_classes(mean_pmf, reserved)).reshape(*shape, -1).astype(np.float32)
    one = np.ones((1, 1, 1))
    space = FeatureSpace(
        bank=np.ones((1, 1)),
        whitening=one,
        centres=np.zeros((1, classes, 1)),
        middle=np.zeros((1, 1)),
        residual=np.zeros((1, 1, 0)),
    )
    columns = len(SCORE_NAMES)
    never = Detector(np.zeros(columns), np.ones(columns), np.zeros(columns), 0.0, NEVER)
    return WarningModel(
        space=space,
        unknown=never,
        usual=None,
        camera_span=CAMERA_SPAN,
        camera=fit_camera(said, tracks, seed),
        quality={},
    )
