"""What fusing costs per view, for every fuser, length of track and number of tracks; bytes per track."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from lla_fusion_ros.bench.timing import Rounds, interleaved
from lla_fusion_ros.bench.workload import random_crops, random_tracks
from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.calibration.choose import CANDIDATES
from lla_fusion_ros.classifier import Classifier
from lla_fusion_ros.engine import FusionEngine, Observation
from lla_fusion_ros.fusion import fusers
from lla_fusion_ros.fusion.base import Fuser
from lla_fusion_ros.rows import state_bytes
from lla_fusion_ros.settings import FusionSettings
from lla_fusion_ros.views import Views

LENGTHS = (1, 10, 100, 1000)
TRACKS = (1, 10, 100)
STEPS = 10  # further views over which the cost at a length is measured: a multiple of what is periodic
# Every fuser: all lengths at this number of tracks, all numbers of tracks at this length.
SWEEP_TRACKS, SWEEP_LENGTH = 10, 10
CYCLE = 30  # different views of each track
CANDIDATE_LENGTHS = (10, 100)  # of the fusers that may become a default, with tracks and warnings
Forwards = dict[str, Callable[[], object]]  # of the networks, by precision


class Workload:
    """What all fusers are measured on: a bundle, and random views of as many classes and features."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        tracks = random_tracks(max(TRACKS), CYCLE, bundle.posterior(), seed=2)
        views = [Views(tracks.logits[:, step], tracks.features[:, step]) for step in range(CYCLE)]
        # cut out here, off the clock: a network hands over views of as many crops as it was given
        self._views = {count: [view.take(slice(count)) for view in views] for count in TRACKS}

    def views(self, step: int, tracks: int) -> Views:
        return self._views[tracks][step % CYCLE]


def measure_fusion(
    bundle: Bundle, rounds: int, quick: bool = False, default_only: bool = False
) -> Iterator[dict[str, Any]]:
    """Records of a `fusion` section, the networks' forward pass of as many crops always among the turns.

    Networks, posterior, warnings and the fitted values of all fusers are the bundle's: what is weighed by a
    variance must compute it. First the default fuser with tracks and warnings, then so the others that a
    bundle may choose as its default, then every fuser alone.
    """
    load, default_fuser = Workload(bundle), bundle.meta.default_fuser
    lengths = (1, 10, 1000) if quick else LENGTHS
    forwards = {tracks: _forwards(bundle, tracks) for tracks in TRACKS}
    for tracks, own in forwards.items():
        yield from _engine_records(load, default_fuser, tracks, lengths, own, rounds)
    if default_only:
        return
    for name in () if quick else [name for name in CANDIDATES if name != default_fuser]:
        for tracks, own in forwards.items():
            yield from _engine_records(load, name, tracks, CANDIDATE_LENGTHS, own, rounds)
    for name in sorted(fusers()):
        for tracks in (SWEEP_TRACKS,) if quick else TRACKS:
            fuser = load.bundle.fuser(name)
            chosen = lengths if tracks == SWEEP_TRACKS else (SWEEP_LENGTH,)
            states = _fuser_at(load, fuser, tracks, chosen)
            timed = interleaved({**forwards[tracks], **states}, max(rounds // 3, 3), least=0.0)
            for length in chosen:
                yield {
                    "fuser": name,
                    "default": False,
                    "with_warnings": False,
                    **_record(timed, length, tracks),
                    "bytes_per_track": states[f"L{length}"].bytes_per_track(),
                }


def _engine_records(
    load: Workload, name: str, tracks: int, lengths: tuple[int, ...], forwards: Forwards, rounds: int
) -> Iterator[dict[str, Any]]:
    """A whole FusionEngine with tracks, the fuser `name`, warnings and verdicts."""
    calls = {f"L{length}": _EngineAt(load, name, tracks, length) for length in lengths}
    timed = interleaved({**forwards, **calls}, rounds, least=0.0)
    for length in lengths:
        yield {
            "fuser": name,
            "default": name == load.bundle.meta.default_fuser,
            "with_warnings": True,
            **_record(timed, length, tracks),
            "bytes_per_track": calls[f"L{length}"].bytes_per_track(),
        }


def steps(length: int) -> int:
    """Views of each track in one turn; of a track that begins there is only the first."""
    return 1 if length == 1 else STEPS


def _record(timed: Rounds, length: int, tracks: int) -> dict[str, Any]:
    per_view = {  # seconds, round by round
        name: seconds / (tracks * (steps(int(name[1:])) if name[0] == "L" else 1))
        for name, seconds in timed.seconds.items()
    }
    rounds, name = Rounds(per_view), f"L{length}"
    return {
        "L": length,
        "tracks": tracks,
        **rounds.ratio(name, "float32").record("ratio_forward", 4),
        **rounds.ratio(name, "int8").record("ratio_forward_int8", 4),
        **rounds.ratio(name, "L10").record("ratio_L10"),
        "us_per_view": round(1e6 * rounds.cost(name).median, 2),
        "forward_us_per_view": round(1e6 * rounds.cost("float32").median, 2),
        "forward_int8_us_per_view": round(1e6 * rounds.cost("int8").median, 2),
    }


def _forwards(bundle: Bundle, tracks: int) -> Forwards:
    """The networks alone, on as many crops as there are tracks in a frame."""
    crops = random_crops(tracks, bundle.input_size)
    return {name: partial(Classifier(bundle, "cpu", name), crops) for name in ("float32", "int8")}


class _EngineAt:
    """STEPS frames through the engine, from tracks of a given length on."""

    def __init__(self, load: Workload, fuser: str, tracks: int, length: int) -> None:
        self._load, self._tracks, self._length = load, tracks, length
        self._ids = tuple(f"{number:04d}" for number in range(tracks))
        # lengths stay what they should be
        settings = FusionSettings(fuser=fuser, restart_on_switch=False, max_age=0.0)
        self._engine = FusionEngine(load.bundle, settings)
        self._step = 0
        self._grow()

    def prepare(self) -> None:
        """Short tracks begin again, so that they stay short."""
        if self._length <= STEPS:
            self._engine.reset()
            self._grow()

    def _grow(self) -> None:
        for _ in range(self._length - 1):
            self._frame()

    def _frame(self) -> None:
        self._step += 1
        views, ids = self._load.views(self._step, self._tracks), self._ids
        if self._engine.tracks == 0:  # they begin in another order than they are seen in later, as on a road
            views, ids = views.take(slice(None, None, -1)), ids[::-1]
        self._engine.update(Observation("camera", self._step * 100_000_000, ids, views))

    def __call__(self) -> None:
        for _ in range(steps(self._length)):
            self._frame()

    def bytes_per_track(self) -> int:
        return self._engine.bytes_per_track()


def _fuser_at(load: Workload, fuser: Fuser, tracks: int, lengths: tuple[int, ...]) -> dict[str, _FuserAt]:
    """The fuser at each length, all on the way of the same tracks."""
    state, at = fuser.initial(tracks), {}
    for length in range(1, max(lengths) + 1):
        if length in lengths:
            at[f"L{length}"] = _FuserAt(load, fuser, tracks, length, state)
        if length < max(lengths):
            state = fuser.update(state, load.views(length, tracks))
    return at


class _FuserAt:
    """Updates and predictions of one fuser; `state` has seen one view less than `length`."""

    def __init__(self, load: Workload, fuser: Fuser, tracks: int, length: int, state: Any) -> None:
        self._load, self._fuser, self._tracks, self._length = load, fuser, tracks, length
        self._state = state

    def __call__(self) -> None:
        for step in range(steps(self._length)):
            state = self._fuser.update(self._state, self._load.views(step, self._tracks))
            self._fuser.predict(state)

    def bytes_per_track(self) -> int:
        return round(state_bytes(self._state) / self._tracks)
