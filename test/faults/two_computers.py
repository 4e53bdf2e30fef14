"""A link between two computers that fails, and computers that fail at its ends."""

from __future__ import annotations

import signal

from faults.computers_scene import FAR, FAR_NODE, FUSION, NEAR, NEAR_NODE, TwoComputers
from faults.drive import CAMERAS, SECOND
from faults.link import FAR_ADDRESS, OTHER_ADDRESS
from faults.neighbours import stuck_reader
from faults.outcome import Checks
from faults.registry import fault
from faults.stage import PATIENCE

WITHIN = 2.0  # seconds after the link is back


def _without_link(scene: TwoComputers, checks: Checks, seconds: float) -> None:
    """The link fails for so long while both cameras go on."""
    scene.play(1.0)
    scene.recover()
    before = scene.answers_of(NEAR)
    scene.link.down()
    scene.play(seconds)
    checks.that(scene.answers_of(NEAR) > before, "the near camera's frames were not fused meanwhile")
    if seconds > 5:
        says = scene.diagnosed.level_and_message(FUSION, FAR)[1]
        checks.that("silent" in says, f"the far camera is said to be: {says}")
    scene.link.up()
    _back(scene, checks)
    scene.check_balance(checks)


def _back(scene: TwoComputers, checks: Checks) -> None:
    checks.recovery = scene.seconds_until_answers()
    checks.that(
        checks.recovery < WITHIN, f"the first answer to the far camera came after {checks.recovery:.1f} s"
    )
    scene.play(1.0)
    scene.judge()


def _outage(seconds: int) -> None:
    def inject(scene: TwoComputers, checks: Checks) -> int:
        _without_link(scene, checks, seconds)
        return 1

    inject.__name__ = f"link_down_{seconds}_s"
    fault(
        f"the link between two computers is down for {seconds} s",
        f"the near camera goes on; the far one is back {WITHIN:g} s after the link at the latest; every view "
        "that left is fused, late, or counted as lost",
        scene="two_computers",
        bounded=False,
    )(inject)


for _seconds in (1, 10, 60):
    _outage(_seconds)


@fault(
    "kill -9 of everything on the far computer, restart",
    "its camera is reported as silent, the near one goes on, and the tracks are kept",
    scene="two_computers",
    bounded=False,
)
def far_computer_killed(scene: TwoComputers, checks: Checks) -> int:
    scene.play(1.0)
    scene.far_is_up = False
    for process in (scene.processes[FAR_NODE], scene.far_camera):
        process.stop(signal.SIGKILL, PATIENCE)
    scene.stage.forget(scene.far_camera)
    scene.play_until(
        NEAR,
        lambda: "silent" in scene.diagnosed.level_and_message(FUSION, FAR)[1],
        "the far camera reported as silent",
    )
    scene.judge()
    scene.start_camera(scene.stage)
    scene.come_back(FAR_NODE, keeps_tracks=True)
    return 1


@fault(
    "the far computer stands still for 5 s (SIGSTOP of all its processes)",
    "the near camera goes on, the far one is back at once; nothing old is fused",
    scene="two_computers",
    bounded=False,
)
def far_computer_stands_still(scene: TwoComputers, checks: Checks) -> int:
    scene.play(1.0)
    stopped = (scene.processes[FAR_NODE], scene.far_camera)
    scene.far_is_up = False
    for process in stopped:
        process.popen.send_signal(signal.SIGSTOP)
    before = scene.answers_of(NEAR)
    scene.play(5.0)
    checks.that(scene.answers_of(NEAR) > before, "the near camera's frames were not fused meanwhile")
    for process in stopped:
        process.popen.send_signal(signal.SIGCONT)
    scene.far_is_up = True
    _back(scene, checks)
    scene.check_balance(checks)
    return 1


@fault(
    "the computer with the fusion node comes last",
    "it finds the far classifier, and fuses its frames",
    scene="two_computers",
    bounded=False,
)
def fusion_comes_last(scene: TwoComputers, checks: Checks) -> int:
    scene.play(1.0)
    for name in (FUSION, NEAR_NODE):
        scene.processes[name].stop(signal.SIGKILL, PATIENCE)
    scene.play(1.0)
    scene.restart(NEAR_NODE)
    scene.come_back(FUSION)
    return 1


@fault(
    "the far computer gets another address while the link is down for a second",
    "its views are fused on; nothing is lost without being counted",
    scene="two_computers",
    bounded=False,
)
def address_changed(scene: TwoComputers, checks: Checks) -> int:
    scene.play(1.0)
    scene.link.down()
    scene.link.set_address(OTHER_ADDRESS)
    scene.play(1.0)
    scene.link.up()
    _back(scene, checks)
    scene.check_balance(checks)
    scene.link.set_address(FAR_ADDRESS)  # Fast DDS looks for answers there, until the nodes start again
    return 1


@fault(
    "the far computer's clock is 0.1, 0.4 and 2 s behind, then as much ahead",
    "up to `max_lateness` (0.5 s) every frame is fused; beyond it those of the clock behind are counted as "
    "`late`",
    scene="two_computers",
    bounded=False,
)
def clocks_apart(scene: TwoComputers, checks: Checks) -> int:
    apart = (-0.1, -0.4, -2.0, 0.1, 0.4, 2.0)
    rounds = 4
    for seconds in apart:
        for _ in range(rounds):
            near = scene.road.next_of(NEAR)
            for shot in (near, scene.road.next_at(near.stamp + round(seconds * SECOND), FAR)):
                if not scene.step(shot):  # no answer tells when it is done
                    scene.diagnosed.fresh(scene.nodes)
        scene.diagnosed.fresh(scene.nodes)
        late = {camera: scene.core_losses(camera)["dropped_late"] for camera in CAMERAS}
        for camera in CAMERAS:
            scene.check_counts(checks, FUSION, camera, scene.core_losses(camera))
        behind = (FAR if seconds < 0 else NEAR) if abs(seconds) > 0.5 else ""
        right = all((count > 0) == (camera == behind) for camera, count in late.items())
        checks.that(right, f"{seconds:+g} s: late are {late}")
        checks.that(not scene.wrong, f"{seconds:+g} s: {scene.wrong[:1]}")
        scene.reset()
    return len(apart) * rounds


@fault(
    "who reads /fused_classes on the far computer stops reading (SIGSTOP), and is killed in the end",
    "everybody else gets every frame, and memory does not grow",
    scene="two_computers",
    bounded=False,
)
def a_reader_that_stops(scene: TwoComputers, checks: Checks) -> int:
    stuck_reader(scene, checks, FUSION, scene.link.far)
    return 1
