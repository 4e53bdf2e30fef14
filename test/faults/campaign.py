"""Runs faults, one after the other, on as few processes as possible, and checks what must always hold."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection

from faults.computers_scene import TwoComputers
from faults.detector_scene import DetectorScene
from faults.link import Link
from faults.outcome import MOST_GROWTH, Checks, NotPossible, Outcome
from faults.registry import SCENES, Fault, all_faults
from faults.scene import NODES, Scene
from faults.stage import Stage

OTHERS: dict[str, Callable[[Stage, float], Scene]] = {
    "detector": DetectorScene,
    "two_computers": TwoComputers,
}
Tell = Callable[[Fault], None]


def run_campaign(
    faults: Sequence[Fault], tell: Tell = lambda fault: None, share: float = 1.0
) -> Iterator[Outcome]:
    """Inject every fault; `tell` is called before each, `share` shortens them. What broke is built again."""
    for kind in SCENES:
        waiting = [fault for fault in faults if fault.scene == kind]
        if kind == "two_computers" and waiting:
            yield from _run_elsewhere(kind, waiting, tell, share)
        else:
            yield from _run_kind(kind, waiting, tell, share)


def _run_elsewhere(kind: str, faults: Sequence[Fault], tell: Tell, share: float) -> Iterator[Outcome]:
    """In a process of its own: Fast DDS looks at the network interfaces once in the life of a process, so one
    that has spoken on this computer never finds those of another network."""
    ours, theirs = get_context("spawn").Pipe()
    process = get_context("spawn").Process(
        target=_send_outcomes, args=(theirs, kind, [f.name for f in faults], share)
    )
    process.start()
    theirs.close()
    try:
        for fault in faults:
            tell(fault)
            try:
                yield ours.recv()
            except EOFError:
                yield _outcome(fault, Checks(["the process that injects it has died"]), 0, 0.0)
    finally:
        process.terminate()
        process.join()


def _send_outcomes(pipe: Connection, kind: str, names: Sequence[str], share: float) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the nodes end with us
    with suppress(KeyboardInterrupt):
        waiting = [fault for fault in all_faults() if fault.name in names]
        for outcome in _run_kind(kind, waiting, lambda fault: None, share):
            pipe.send(outcome)


def _run_kind(kind: str, waiting: list[Fault], tell: Tell, share: float) -> Iterator[Outcome]:
    while waiting:
        with ExitStack() as exits:
            try:
                stage, scene = _open(kind, share, exits)
            except AssertionError as error:  # nothing to inject a fault into: the first one tells
                yield _outcome(waiting.pop(0), Checks([f"the nodes did not come up: {error}"]), 0, 0.0)
                continue
            except NotPossible as error:
                yield from (_outcome(fault, Checks(), 0, 0.0, reason=str(error)) for fault in waiting)
                break
            while waiting:
                fault = waiting.pop(0)
                tell(fault)
                outcome = _run_alone(fault, stage) if scene is None else _run_on(fault, scene)
                yield outcome
                if scene is None or not outcome.good:  # processes of one fault must not meet the next
                    break


def _open(kind: str, share: float, exits: ExitStack) -> tuple[Stage, Scene | None]:
    stage = exits.enter_context(Stage(Link() if kind == "two_computers" else None))
    if kind in NODES:
        return stage, Scene(stage, NODES[kind], share)
    return stage, None if kind == "alone" else OTHERS[kind](stage, share)


def _run_on(fault: Fault, scene: Scene) -> Outcome:
    begun, checks, injected = time.monotonic(), Checks(), 0
    before = scene.memory_mb()
    growth = 0.0
    try:
        injected = fault.inject(scene, checks)
        scene.settle()
        checks.that(not scene.wrong, f"{len(scene.wrong)} wrong answers, first: {scene.wrong[:1]}")
        for name, process in scene.processes.items():
            process.check()
            checks.that("Traceback" not in process.log, f"{name} printed a traceback:\n{process.log[-3000:]}")
            errors = scene.diagnosed.of_node(name).get("dropped_internal_error", "0")
            checks.that(errors == "0", f"{name} reports {errors} internal errors")
        after = scene.memory_mb()
        growth = max((after[pid] - before[pid] for pid in after if pid in before), default=0.0)
        checks.that(growth < MOST_GROWTH, f"memory grew by {growth:.1f} MB")
        scene.reset()
    except Exception as error:  # a fault of the campaign's own is a failure too, and must not end the others
        checks.failures.append(f"{type(error).__name__}: {error}\ncounted meanwhile: {scene.all_growth()}")
    return _outcome(fault, checks, injected, time.monotonic() - begun, growth)


def _run_alone(fault: Fault, stage: Stage) -> Outcome:
    begun, checks, injected, reason = time.monotonic(), Checks(), 0, ""
    try:
        injected = fault.inject(stage, checks)
    except NotPossible as error:
        reason = str(error)
    except Exception as error:
        checks.failures.append(f"{type(error).__name__}: {error}")
    return _outcome(fault, checks, injected, time.monotonic() - begun, reason=reason)


def _outcome(
    fault: Fault, checks: Checks, injected: int, seconds: float, growth: float = 0.0, reason: str = ""
) -> Outcome:
    return Outcome(
        fault.name,
        injected,
        checks.held + len(checks.failures),
        tuple(checks.failures),
        reason,
        growth,
        seconds,
        checks.recovery,
    )
