"""The engine: frames in, fused classes, verdicts and counts out."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from lla_fusion_ros.engine.engine import FrameResult, FusionEngine, Observation
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.settings import FusionSettings
from lla_fusion_ros.types.views import Views
from lla_fusion_ros.warnings.flow import HOLD
from lla_fusion_ros.warnings.result import CAMERA_DISAGREEMENT, IDENTITY_SWITCH, OUT_OF_DISTRIBUTION, Level
from support.feature_world import CLASSES, WorldModel

SECOND = 1_000_000_000
START = 1_000 * SECOND


def frame(tracks, step: int, ids=None, camera: str = "front", seconds: float | None = None) -> Observation:
    names = [f"t{i}" for i in range(len(tracks.label))] if ids is None else ids
    stamp = START + round((0.1 * step if seconds is None else seconds) * SECOND)
    return Observation(camera, stamp, names, tracks.views_at(step % tracks.logits.shape[1]))


def drive(engine: FusionEngine, tracks, steps: int = 12, first: int = 0) -> list[FrameResult]:
    return [engine.update(frame(tracks, step)) for step in range(first, first + steps)]


def test_the_engine_gives_what_the_fuser_alone_gives(world, model) -> None:
    tracks = world.known(4)
    engine = FusionEngine(model, FusionSettings(restart_on_switch=False))
    fuser = model.fuser()
    state = fuser.initial(4)
    for step in range(12):
        state = fuser.update(state, tracks.views_at(step))
        result = engine.update(frame(tracks, step))
        np.testing.assert_allclose(result.pmf, fuser.predict(state), rtol=1e-12)
    assert result.ids == ("t0", "t1", "t2", "t3")


@pytest.mark.parametrize("name", ["wls", "reliability", "ema"])
def test_tracks_do_not_disturb_each_other(world, model, name) -> None:
    tracks = world.known(6)
    together = FusionEngine(model, FusionSettings(fuser=name, window=4))
    alone = FusionEngine(model, FusionSettings(fuser=name, window=4))
    rng = np.random.default_rng(0)
    for step in range(8):
        seen = [0, *(i for i in range(1, 6) if rng.random() < 0.5)]
        views = tracks.views_at(step)
        result = together.update(
            Observation("front", START + step, [f"t{i}" for i in seen], views.take(np.array(seen)))
        )
        single = alone.update(Observation("front", START + step, ["t0"], views.take(slice(0, 1))))
        np.testing.assert_allclose(result.pmf[0], single.pmf[0], rtol=1e-9)


def test_a_known_object_is_named_and_not_warned_of(world, model) -> None:
    tracks = world.known(40)
    last = drive(FusionEngine(model), tracks)[-1]
    assert np.mean(last.pmf.argmax(axis=1) == tracks.label) > 0.95
    assert np.mean([v.level == Level.OK for v in last.verdicts]) > 0.9


def test_a_stranger_is_warned_of_with_reason_and_numbers(world, model) -> None:
    last = drive(FusionEngine(model), world.strange(20))[-1]
    warned = [v for v in last.verdicts if OUT_OF_DISTRIBUTION in v.reasons]
    assert len(warned) > 15
    verdict = warned[0]
    assert verdict.level in (Level.WARN, Level.ERROR)
    assert verdict.p_known <= last.verdicts.thresholds[OUT_OF_DISTRIBUTION] * 2
    assert verdict.views == {"front": 12}
    assert 0 <= verdict.normalised_entropy <= 1
    assert verdict.mutual_information >= 0
    assert verdict.pmf[verdict.top] == verdict.probability == verdict.pmf.max()


def test_nobody_is_called_a_stranger_before_enough_views(world, model) -> None:
    results = drive(FusionEngine(model, FusionSettings(min_views=6)), world.strange(20), steps=5)
    assert not any(OUT_OF_DISTRIBUTION in v.reasons for r in results for v in r.verdicts)


def two_kinds(world, count: int = 20):
    """Tracks of one class and as many of another."""
    return world.tracks(np.zeros(count, int)), world.tracks(np.full(count, CLASSES - 1))


def test_an_identity_switch_is_flagged_and_the_track_restarts(world, model) -> None:
    first, second = two_kinds(world)
    engine = FusionEngine(model)
    drive(engine, first, steps=8)
    results = drive(engine, second, steps=5, first=8)
    restarted = {key for result in results for key in result.restarted}
    assert len(restarted) >= 18
    assert restarted == {key for result in results for key in result.switched}
    assert np.mean(results[-1].pmf.argmax(axis=1) == CLASSES - 1) > 0.9  # the old class is forgotten
    hit = next(result for result in results if result.restarted)
    row = hit.ids.index(hit.restarted[0])
    assert IDENTITY_SWITCH in hit.verdicts[row].reasons
    assert hit.verdicts[row].level == Level.ERROR
    assert hit.verdicts[row].views == {"front": 1}


def test_a_switch_stays_visible_for_a_while_and_is_cleared_once(world, model) -> None:
    first, second = two_kinds(world, 1)
    engine = FusionEngine(model)
    drive(engine, first, steps=8)
    results = drive(engine, second, steps=16, first=8)
    flagged = [IDENTITY_SWITCH in result.verdicts[0].reasons for result in results]
    frames = HOLD // (SECOND // 10)
    assert frames <= sum(flagged) <= frames + 2  # until it has begun again, and a second more
    assert [result.cleared for result in results].count(("t0",)) == 1


def test_restarting_can_be_switched_off(world, model) -> None:
    first, second = two_kinds(world)
    engine = FusionEngine(model, FusionSettings(restart_on_switch=False))
    drive(engine, first, steps=8)
    results = drive(engine, second, steps=3, first=8)
    assert not any(result.restarted for result in results)
    assert len([key for result in results for key in result.switched]) >= 18  # seen all the same, once each
    assert any(IDENTITY_SWITCH in v.reasons for result in results for v in result.verdicts)
    assert results[-1].verdicts[0].views == {"front": 11}


def test_cameras_that_contradict_each_other_are_flagged(world, model) -> None:
    first, second = two_kinds(world)
    engine = FusionEngine(model, FusionSettings(restart_on_switch=False))
    for step in range(5):
        engine.update(frame(first, step, camera="front"))
        result = engine.update(frame(second, step, camera="left", seconds=0.1 * step + 0.02))
    assert np.mean([CAMERA_DISAGREEMENT in v.reasons for v in result.verdicts]) > 0.9
    assert result.verdicts[0].views == {"front": 5, "left": 5}


def warned_engine(world, model, **settings) -> tuple[FusionEngine, set[str]]:
    """An engine that has just warned of strangers, and their ids."""
    engine = FusionEngine(model, FusionSettings(**settings))
    last = drive(engine, world.strange(5))[-1]
    warned = {i for i, v in zip(last.ids, last.verdicts, strict=True) if v.level}
    assert warned
    return engine, warned


@pytest.mark.parametrize(
    ("settings", "ids", "seconds"),
    [
        ({"idle_timeout": 1.0}, ["new"], 60.0),
        ({"capacity": 5}, ["n0", "n1", "n2", "n3", "n4"], 1.2),
        ({}, ["new"], -100.0),
        ({"max_age": 2.0}, ["t0", "t1", "t2", "t3", "t4"], 2.5),
        ({"idle_timeout": 1.0}, [""], 60.0),
    ],
    ids=["idle", "capacity", "clock jump", "max_age", "idle, seen with a frame of no use"],
)
def test_a_warned_track_that_is_forgotten_or_starts_again_clears_its_warning_once(
    world, model, settings, ids, seconds
) -> None:
    engine, warned = warned_engine(world, model, **settings)
    known = world.known(len(ids))
    results = [engine.update(frame(known, k, ids=ids, seconds=seconds + 0.1 * k)) for k in range(4)]
    assert sorted(key for key in results[0].cleared) == sorted(warned)
    assert not any(key in warned for result in results[1:] for key in result.cleared)


@pytest.mark.parametrize(
    "change",
    [{"fuser": "last"}, {"window": 7}, None],
    ids=["fuser", "window", "reset"],
)
def test_a_warning_ends_when_all_tracks_are_forgotten_between_frames(world, model, change) -> None:
    engine, warned = warned_engine(world, model)
    ended = engine.reset() if change is None else engine.configure(FusionSettings(**change))
    assert sorted(ended) == sorted(warned)
    assert engine.tracks == 0 and engine.reset() == ()
    assert engine.update(frame(world.known(5), 0)).cleared == ()


def test_other_settings_end_no_warning(world, model) -> None:
    engine, _ = warned_engine(world, model)
    assert engine.configure(FusionSettings(ood_false_alarm=0.05)) == ()


def test_warnings_can_be_switched_off(world, model) -> None:
    last = drive(FusionEngine(model, FusionSettings(warnings=False)), world.strange(5))[-1]
    assert all(v.level == Level.OK and v.p_known == 1.0 for v in last.verdicts)


def test_a_bundle_without_warning_model_fuses_all_the_same(world) -> None:
    last = drive(FusionEngine(WorldModel(world, None, "pool")), world.known(3))[-1]
    assert [v.level for v in last.verdicts] == [Level.OK] * 3


def test_bad_views_raise_and_change_nothing(world, model) -> None:
    tracks = world.known(2)
    engine, untouched = FusionEngine(model), FusionEngine(model)
    drive(engine, tracks, steps=3)
    drive(untouched, tracks, steps=3)
    good = tracks.views_at(3)
    broken = good.logits.copy()
    broken[1, 0, 0] = np.nan
    for observation in (
        Observation("front", START + SECOND, ["t0", "t1"], Views(broken, good.features)),
        Observation("front", START + SECOND, ["t0", "t1"], Views(good.logits[..., :-1], good.features)),
        Observation("front", START + SECOND, ["t0"], good),
    ):
        with pytest.raises(InputError):
            engine.update(observation)
    np.testing.assert_array_equal(engine.update(frame(tracks, 3)).pmf, untouched.update(frame(tracks, 3)).pmf)


def test_a_frame_without_detections_is_a_frame(world, model) -> None:
    engine = FusionEngine(model)
    drive(engine, world.known(2), steps=2)
    result = engine.update(
        Observation("front", START + SECOND, [], world.known(1).views_at(0).take(slice(0, 0)))
    )
    assert result.ids == () and result.pmf.shape == (0, CLASSES) and len(result.verdicts) == 0
    assert engine.tracks == 2


def test_drops_are_told_with_their_reason(world, model) -> None:
    engine = FusionEngine(model)
    tracks = world.known(3)
    assert engine.update(frame(tracks, 0, ids=["a", "a", ""])).dropped == {"duplicate": 1, "empty_id": 1}
    assert engine.update(frame(tracks, 0, ids=["a", "b", "c"])).dropped == {"duplicate": 1}
    late = engine.update(frame(tracks, 1, ids=["a", "b", "c"], seconds=-1.0))
    assert late.dropped == {"late": 3} and late.ids == ()


def test_a_clock_jump_clears_all_tracks_and_says_so_once(world, model) -> None:
    engine = FusionEngine(model)
    tracks = world.known(3)
    drive(engine, tracks, steps=10)
    fresh = FusionEngine(model)
    results = [engine.update(frame(tracks, step, seconds=-100.0 + 0.1 * step)) for step in range(3)]
    expected = [fresh.update(frame(tracks, step, seconds=-100.0 + 0.1 * step)) for step in range(3)]
    assert [result.jumped for result in results] == [True, False, False]
    for result, other in zip(results, expected, strict=True):
        np.testing.assert_allclose(result.pmf, other.pmf, rtol=1e-12)


def test_more_tracks_than_rows_make_the_arrays_grow(world, model) -> None:
    engine = FusionEngine(model)
    tracks = world.known(300, steps=2)
    before = engine.update(frame(tracks, 0, ids=[f"x{i}" for i in range(300)]))
    after = engine.update(frame(tracks, 1, ids=[f"x{i}" for i in range(300)]))
    assert engine.tracks == 300
    assert (after.verdicts.views == 2).all() and (before.verdicts.views == 1).all()


def test_evicted_rows_do_not_leak_into_new_tracks(world, model) -> None:
    small = FusionEngine(model, FusionSettings(capacity=2))
    tracks = world.known(2)
    drive(small, tracks, steps=5)
    new = small.update(frame(tracks, 5, ids=["new0", "new1"]))
    fresh = FusionEngine(model).update(frame(tracks, 5, ids=["new0", "new1"]))
    np.testing.assert_allclose(new.pmf, fresh.pmf, rtol=1e-12)
    assert {key for key in new.removed} == {"t0", "t1"}


def test_settings_change_between_frames_and_bad_ones_are_refused(world, model) -> None:
    engine = FusionEngine(model)
    tracks = world.known(2)
    drive(engine, tracks, steps=3)
    with pytest.raises(InputError, match="no fuser 'magic'"):
        engine.configure(FusionSettings(fuser="magic"))
    assert engine.fuser.name == "pool" and engine.tracks == 2
    engine.configure(FusionSettings(ood_false_alarm=0.1))
    assert engine.tracks == 2
    engine.configure(FusionSettings(fuser="last"))
    assert engine.tracks == 0 and engine.fuser.name == "last"
    result = engine.update(frame(tracks, 4))
    np.testing.assert_allclose(
        result.pmf, model.fuser("mean_pmf").predict(_one(model, tracks, 4)), rtol=1e-12
    )


def _one(model: WorldModel, tracks, step: int):
    fuser = model.fuser("mean_pmf")
    return fuser.update(fuser.initial(len(tracks.label)), tracks.views_at(step))


def test_reset_forgets_everything(world, model) -> None:
    engine = FusionEngine(model)
    tracks = world.strange(3)
    drive(engine, tracks)
    engine.reset()
    assert engine.tracks == 0
    result = engine.update(frame(tracks, 0, seconds=-500.0))
    assert not result.jumped and (result.verdicts.views == 1).all()
    assert all(v.level == Level.OK for v in result.verdicts)


def test_the_note_of_a_fuser_appears_once_it_is_used_over_time(world, model) -> None:
    engine = FusionEngine(model, FusionSettings(fuser="wls"))
    tracks = world.known(1)
    assert engine.update(frame(tracks, 0)).notes == ()
    assert "wls_robust" in engine.update(frame(tracks, 1)).notes[0]


def test_thousands_of_frames_leave_the_memory_of_the_engine_unchanged(world, model) -> None:
    engine = FusionEngine(model, FusionSettings(capacity=4, warnings=False))
    views = world.known(2).views_at(0)

    tracemalloc.start()
    try:
        for step in range(2_000):
            engine.update(
                Observation("front", START + step * SECOND // 100, [f"{step // 70}", f"b{step // 90}"], views)
            )
            if step == 500:  # every track that fits has come, with as many views as it remembers
                gc.collect()
                early = tracemalloc.get_traced_memory()[0]
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - early < 20_000
    finally:
        tracemalloc.stop()
    assert engine.tracks <= 4


def test_the_core_imports_without_ros_and_without_torch() -> None:
    code = (
        "import sys; sys.modules['rclpy'] = None; sys.modules['torch'] = None\n"
        "import lla_fusion_ros.engine.engine, lla_fusion_ros.warnings.fit\n"
        "from lla_fusion_ros.fusion import fusers\n"
        "assert len(fusers()) >= 15\n"
        "assert 'rclpy' not in [m for m, v in sys.modules.items() if v]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
