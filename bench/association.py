"""Objects of several cameras joined by geometry, each camera its own tracker: sign world and a real rig.

    python -m bench.association                                     # precision, recall, time: a minute
    python -m bench.association --ddad FOLDER                       # and a real rig (DDAD_mini)
    python -m bench.association --model signworld  # and fused NLL over that with true ids

10% of the boxes are missed and all are jittered by 5% of their sides. A pair is a track of one camera and one
of another: "joined" if it ever was; recall is over pairs of one object that both cameras saw at 5 moments.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from bench.drive import six_camera_drive
from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.bundle.resources import find_model
from lla_fusion_ros.engine.engine import FusionEngine, Observation
from lla_fusion_ros.images.crops import Pixels, check_boxes, cut_crops
from lla_fusion_ros.networks.classifier import Classifier
from lla_fusion_ros.signworld import Drive, DriveSettings
from lla_fusion_ros.signworld.drive_settings import THREE_CAMERAS, TWO_CAMERAS
from lla_fusion_ros.signworld.geometry import lens_of, mount_of
from lla_fusion_ros.signworld.scene import place_row
from lla_fusion_ros.tracking.association import Association, See, Shows
from lla_fusion_ros.tracking.lens import Lens
from lla_fusion_ros.tracking.pairs import see, shown
from lla_fusion_ros.tracking.tracker import Tracker
from lla_fusion_ros.tracking.transforms import Pose
from lla_fusion_ros.types.settings import FusionSettings

MISSED, JITTER = 0.10, 0.05
IDLE = round(FusionSettings().idle_timeout * 1e9)
LEAST = 5  # moments that both cameras saw an object
TUNED, FRESH = range(100, 106), range(500, 520)


@dataclass
class Boxes:
    """A frame as a detector gives it: boxes and whose they are."""

    camera: str
    stamp: int
    boxes: np.ndarray
    truth: tuple[str, ...]


def frames(drive: Drive, seed: int, stagger: float | None = None) -> Iterator[Boxes]:
    """The boxes of a drive, without its images."""
    rng = np.random.default_rng([seed, 77])
    for step in range(drive.steps):
        for number, camera in enumerate(drive.settings.cameras):
            moment = step / drive.settings.rate + number * (
                drive.settings.stagger if stagger is None else stagger
            )
            x, z = drive.vehicle(moment)
            things = [thing for thing in drive.objects if 0 < thing.position[2] - z < 60]
            seen = drive._tracked(number, drive._renderers[number].see(things, (x, z)))
            edges = np.array([sighting.box for sighting in seen]).reshape(-1, 4)
            names = [sighting.thing.id for sighting in seen]
            kept = np.flatnonzero(rng.random(len(names)) >= MISSED)
            boxes = jittered(edges[kept], JITTER, rng)
            yield Boxes(camera.name, round(moment * 1e9) + 10**9, boxes, tuple(names[row] for row in kept))


def jittered(edges: np.ndarray, jitter: float, rng: np.random.Generator) -> np.ndarray:
    """x0, y0, x1, y1 -> cx, cy, w, h with mishaps."""
    sides = edges[:, 2:] - edges[:, :2]
    middle = (edges[:, :2] + edges[:, 2:]) / 2 + sides * rng.normal(0, jitter, sides.shape)
    return np.concatenate([middle, sides * np.exp(rng.normal(0, jitter, sides.shape))], axis=1)


def disturbed(mount: Pose, rng: np.random.Generator, degrees: float, metres: float) -> Pose:
    """A calibration that is off by so much, in a random direction."""
    axis, shift = rng.normal(size=3), rng.normal(size=3)
    turn = Rotation.from_rotvec(np.deg2rad(degrees) * axis / np.linalg.norm(axis)).as_matrix()
    return Pose(mount.rotation @ turn, mount.place + metres * shift / np.linalg.norm(shift))


@dataclass
class Score:
    """Pairs counted over drives."""

    right: int = 0
    wrong: int = 0
    wanted: int = 0
    found: int = 0
    wrong_for: list[float] = field(default_factory=list)

    def row(self, title: str) -> str:
        """Of the table."""
        joined = self.right + self.wrong
        longest = f", for at most {max(self.wrong_for):.1f} s" if self.wrong_for else ""
        return (
            f"| {title} | {self.wrong} of {joined}{longest} | {self.right / max(1, joined):.3f} | "
            f"{self.found / max(1, self.wanted):.3f} of {self.wanted} |"
        )


def run(
    drive: Drive,
    seed: int,
    score: Score,
    degrees: float = 0.0,
    metres: float = 0.0,
    stagger: float | None = None,
    offset: float = 0.0,
    turned: float = 0.0,
) -> None:
    """One drive: trackers, association, truth."""
    rng = np.random.default_rng([seed, 78])
    names = [camera.name for camera in drive.settings.cameras]
    lenses = {camera.name: lens_of(camera) for camera in drive.settings.cameras}
    mounts = {camera.name: mount_of(camera) for camera in drive.settings.cameras}
    for name in names[1:]:
        mounts[name] = disturbed(mounts[name], rng, degrees, metres)
    if turned:
        yaw = Rotation.from_euler("y", turned, degrees=True).as_matrix()
        mounts[names[-1]] = Pose(mounts[names[-1]].rotation @ yaw, mounts[names[-1]].place)
    association = Association(names, *looks(lenses, mounts))
    trackers = {name: Tracker() for name in names}
    moments: dict[str, dict[int, str]] = defaultdict(dict)
    wrong: dict[tuple[str, str], list[int]] = defaultdict(list)
    ever: set[tuple[str, str]] = set()
    period = round(1e9 / drive.settings.rate)
    history = []
    for frame in frames(drive, seed, stagger):
        stamp = frame.stamp + (round(offset * 1e9) if frame.camera == names[-1] else 0)
        ids = trackers[frame.camera].update(stamp, frame.boxes)
        named = [f"{frame.camera}/{own}" for own in ids]
        for name, true in zip(named, frame.truth, strict=True):
            moments[name][frame.stamp // period] = true
        groups = association.groups(stamp)
        association.observe(frame.camera, stamp, named, frame.boxes)
        history.append((stamp, groups))
    history.append((stamp + 10**8, association.finish()))

    def same(pair: tuple[str, str]) -> bool:
        """Whether two tracks show one object at most of the moments that both were seen."""
        a, b = (moments[name] for name in pair)
        both = a.keys() & b.keys()
        return sum(a[at] == b[at] for at in both) * 2 > len(both)

    since: dict[tuple[str, str], int] = {}
    for stamp, groups in history:
        now = {(a, b) for a, members in groups.items() for b in members if a < b and _camera(a) != _camera(b)}
        ever |= now
        for pair in now:
            since.setdefault(pair, stamp)
        for pair in [pair for pair in since if pair not in now]:
            begun = since.pop(pair)
            if not same(pair):
                wrong[pair].append(stamp - begun)
    for pair, begun in since.items():
        if not same(pair):
            wrong[pair].append(history[-1][0] - begun)
    score.right += sum(map(same, ever))
    score.wrong += sum(not same(pair) for pair in ever)
    score.wrong_for += [max(spans) / 1e9 for spans in wrong.values()]
    for a, b in combinations(sorted(moments), 2):
        both = moments[a].keys() & moments[b].keys()
        if _camera(a) != _camera(b) and len(both) >= LEAST and same((a, b)):
            score.wanted += 1
            score.found += (a, b) in ever


def _camera(name: str) -> str:
    return name.rpartition("/")[0]


def drive_of(seed: int, kind: str, seconds: float) -> Drive:
    settings = DriveSettings(seed=seed, look=1, duration=seconds)
    if kind == "three":
        return Drive(replace(settings, cameras=THREE_CAMERAS))
    if kind == "row":
        objects = place_row(seconds * 9 + 60, np.random.default_rng([seed, 79]))
        return Drive(replace(settings, objects=objects, cameras=TWO_CAMERAS if seed % 2 else THREE_CAMERAS))
    return Drive(settings)


CASES = {
    "two cameras, true calibration": ("two", {}),
    "three cameras, true calibration": ("three", {}),
    "two cameras, not synchronised (50 ms)": ("two", {"stagger": 0.05}),
    "two cameras, off by .3 deg and 2 cm": ("two", {"degrees": 0.3, "metres": 0.02}),
    "three cameras, off by .3 deg and 2 cm": ("three", {"degrees": 0.3, "metres": 0.02}),
    "row of identical signs": ("row", {}),
    "row of identical signs, off by .3 deg and 2 cm": ("row", {"degrees": 0.3, "metres": 0.02}),
    "camera turned by 10 deg": ("two", {"turned": 10.0}),
    "row, camera turned by 10 deg": ("row", {"turned": 10.0}),
    "clock of one camera .4 s ahead": ("two", {"offset": 0.4}),
    "row, clock of one camera .4 s ahead": ("row", {"offset": 0.4}),
}


def ddad(folder: Path, jitter: float, degrees: float, seed: int, score: Score) -> None:
    """Three moments of a real rig with three cameras; its ids are the tracks."""
    scene = json.loads((folder / "scene.json").read_text())
    rng = np.random.default_rng([seed, 80])
    lenses: dict[str, Lens] = {}
    mounts: dict[str, Pose] = {}
    for name, camera in scene["cameras"].items():
        k, pose = camera["intrinsics"], camera["pose_in_vehicle"]
        lenses[name] = Lens(1936, 1216, (k["fx"], k["skew"], k["cx"], 0, k["fy"], k["cy"], 0, 0, 1))
        turn = Rotation.from_quat([pose["rotation"][axis] for axis in ("qx", "qy", "qz", "qw")]).as_matrix()
        mount = Pose(turn, np.array([pose["translation"][axis] for axis in "xyz"]))
        mounts[name] = disturbed(mount, rng, degrees if len(mounts) else 0.0, 0.0)
    association = Association(tuple(mounts), *looks(lenses, mounts))
    tracks: dict[str, str] = {}
    shared: Counter[tuple[str, str]] = Counter()
    moments = sorted({frame["timestamp"] for frame in scene["frames"]})
    for number, moment in enumerate(moments):
        now: dict[str, list[str]] = defaultdict(list)
        for frame in scene["frames"]:
            if frame["timestamp"] != moment:
                continue
            corner = np.array([each["box"] for each in frame["objects"]], float)
            edges = np.concatenate([corner[:, :2], corner[:, :2] + corner[:, 2:]], axis=1)
            names = [f"{frame['camera']}/{each['id']}" for each in frame["objects"]]
            for name, each in zip(names, frame["objects"], strict=True):
                tracks[name] = str(each["id"])
                now[str(each["id"])].append(name)
            stamp = (number + 1) * 10**9
            association.groups(stamp)
            association.observe(frame["camera"], stamp, names, jittered(edges, jitter, rng))
        for names in now.values():
            shared.update((a, b) for a in names for b in names if a < b)
    groups = association.finish()
    joined = {(a, b) for a, own in groups.items() for b in own if a < b and _camera(a) != _camera(b)}
    score.right += sum(tracks[a] == tracks[b] for a, b in joined)
    score.wrong += sum(tracks[a] != tracks[b] for a, b in joined)
    score.wanted += len(shared)
    score.found += sum(pair in joined for pair in shared)


def fused_nll(model: str, seeds: range, seconds: float) -> None:
    """What counts: the fused distribution with true ids, with association, and of each camera by itself."""
    bundle = load_bundle(find_model(model))
    classifier = Classifier(bundle)
    # [of all views, of views of joined tracks], each: how -> object -> NLL
    totals = [defaultdict[str, dict[str, float]](lambda: defaultdict(float)) for _ in range(2)]
    views_seen = [0, 0]
    for seed in seeds:
        drive = drive_of(seed, "two", seconds)
        names = drive.camera_names
        lenses = {camera.name: lens_of(camera) for camera in drive.settings.cameras}
        mounts = {camera.name: mount_of(camera) for camera in drive.settings.cameras}
        joined = Association(names, *looks(lenses, mounts))
        trackers = {name: Tracker() for name in names}
        engines = {how: FusionEngine(bundle) for how in ("true ids", "association", "each camera")}
        rng = np.random.default_rng([seed, 81])
        for frame in drive:
            kept = np.flatnonzero(rng.random(len(frame.ids)) >= MISSED)
            half = frame.boxes[kept, 2:] / 2
            edges = np.concatenate([frame.boxes[kept, :2] - half, frame.boxes[kept, :2] + half], axis=1)
            boxes = jittered(edges, JITTER, rng)
            pixels = Pixels(frame.image, "rgb")
            check = check_boxes(boxes, pixels.shape, 1.0)
            own = trackers[frame.camera].update(frame.stamp, boxes)
            rows = np.array([row for row in np.flatnonzero(check.keep) if own[row]], int)
            if not len(rows):
                continue
            views = classifier(cut_crops(pixels, check.boxes[rows], bundle.input_size, bundle.crop_margin))
            tracks = [f"{frame.camera}/{own[row]}" for row in rows]
            ids = {"true ids": [frame.ids[kept[row]] for row in rows]}
            groups = joined.groups(frame.stamp)
            for how, engine in engines.items():
                members = groups if how == "association" else {}
                given = Observation(frame.camera, frame.stamp, ids.get(how, tracks), views, members)
                result = engine.update(given)
                shown = kept[rows[result.kept]]
                chosen = np.maximum(result.pmf[np.arange(len(shown)), frame.labels[shown]], 1e-12)
                for row in np.flatnonzero(frame.labels[shown] >= 0):
                    for part in range(1 + (tracks[np.arange(len(rows))[result.kept][row]] in groups)):
                        totals[part][how][f"{seed}/{frame.ids[shown[row]]}"] -= float(np.log(chosen[row]))
                        views_seen[part] += how == "true ids"
                if how == "association":
                    joined.observe(frame.camera, frame.stamp, tracks, boxes[rows], result.own)
    for part, views_of in enumerate(("all views", "views of joined tracks")):
        objects = list(totals[part]["true ids"])
        sums = {how: np.array([found[name] for name in objects]) for how, found in totals[part].items()}
        drawn = np.random.default_rng(0).integers(0, len(objects), (2000, len(objects)))  # bootstrap
        best = sums["true ids"]
        print(f"fused NLL over {views_of}: {views_seen[part]} of {len(objects)} objects")
        for how, each in sums.items():
            low, high = np.quantile(each[drawn].sum(axis=1) / best[drawn].sum(axis=1), (0.025, 0.975))
            print(
                f"  {how:12s} {each.sum() / views_seen[part]:.4f}, {each.sum() / best.sum():.3f} "
                f"[{low:.3f}, {high:.3f}] of that with true ids"
            )


def looks(lenses: dict[str, Lens], mounts: dict[str, Pose]) -> tuple[See, Shows]:
    """The geometry of cameras that do not move, as an Association wants it."""
    return (
        lambda name, _, boxes: see(lenses[name], mounts[name], boxes),
        lambda name, _, points: shown(lenses[name], mounts[name], points),
    )


def cost(seconds: float = 30.0) -> None:
    """Six cameras with 20 tracks each."""
    drive = six_camera_drive(duration=seconds)
    lenses = {camera.name: lens_of(camera) for camera in drive.settings.cameras}
    mounts = {camera.name: mount_of(camera) for camera in drive.settings.cameras}
    association = Association(drive.camera_names, *looks(lenses, mounts))
    spent = []
    last: dict[str, int] = {}
    for frame in frames(drive, 0):
        names = [f"{frame.camera}/{own}" for own in frame.truth]
        last.update(dict.fromkeys(names, frame.stamp))
        gone = [
            name for name, stamp in last.items() if frame.stamp - stamp > IDLE
        ]  # as the engine forgets them
        for name in gone:
            del last[name]
        begin = time.process_time()
        association.groups(frame.stamp)
        association.forget(gone)
        association.observe(frame.camera, frame.stamp, names, frame.boxes)
        spent.append(1e3 * (time.process_time() - begin))
    half = len(spent) // 2
    print(
        f"six cameras, 20 tracks each: {np.mean(spent):.2f} ms a frame, "
        f"first half {np.mean(spent[:half]):.2f}, second {np.mean(spent[half:]):.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="length of each drive")
    parser.add_argument("--tuning", action="store_true", help="the drives that constants were chosen on")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--model", help="bundle for the fused NLL, or the name of one that ships")
    parser.add_argument("--ddad", type=Path, help="folder of DDAD_mini")
    options = parser.parse_args()
    if not options.only:
        cost()
    if options.model:
        fused_nll(options.model, range(700, 720), options.seconds)
    print("| | pairs joined wrongly | precision | recall |\n|---|---|---|---|")
    for title, (kind, how) in CASES.items():
        if options.only not in title:
            continue
        score = Score()
        for seed in TUNED if options.tuning else FRESH:
            run(drive_of(seed, kind, options.seconds), seed, score, **how)
        print(score.row(title), flush=True)
    if options.ddad:
        for title, jitter, degrees in (
            ("its boxes", 0, 0),
            ("5% jitter", 0.05, 0),
            ("5% jitter, .3 deg", 0.05, 0.3),
        ):
            score = Score()
            for seed in (
                range(1 if not jitter else 40)
                if options.tuning
                else range(1000, 1001 if not jitter else 1200)
            ):
                ddad(options.ddad, jitter, degrees, seed, score)
            print(score.row(f"real rig, {title}"), flush=True)


if __name__ == "__main__":
    main()
