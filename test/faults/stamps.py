"""Clocks that are wrong: stepping, unset, of the future, of another epoch."""

from __future__ import annotations

from collections.abc import Callable

from builtin_interfaces.msg import Time
from rosgraph_msgs.msg import Clock

from faults.drive import CAMERAS, SECOND, TENTH
from faults.outcome import Checks
from faults.registry import fault
from faults.scene import Scene

HOUR = 3600 * SECOND
YEARS = 10 * 365 * 24 * HOUR
LAST_SECOND = (2**31 - 1) * SECOND  # the largest stamp that a header can hold
# From the stamp that would be right to the one that is sent.
Strange = Callable[[int], int]
FUTURE: tuple[Strange, ...] = (lambda good: good + HOUR, lambda good: good + YEARS, lambda good: LAST_SECOND)
OTHER_EPOCH: tuple[Strange, ...] = (
    lambda good: good - HOUR,
    lambda good: good - YEARS,
    lambda good: good % (100 * SECOND) + SECOND,  # seconds since boot
)


@fault(
    "the cameras' clock and /clock (use_sim_time) step forth and back by 0.3 s, 1 s, 10 s, 1 h and 10 days",
    "within `max_lateness` nothing happens; further back frames are `late` until time has caught up; a step "
    "back of more than `clock_jump` (2 s) clears all tracks, is counted, and its first frame is fused",
)
def clock_steps(scene: Scene, checks: Checks) -> int:
    checks.that(scene.set_parameter("perception", "use_sim_time", True).successful, "no sim time")
    clock = scene.vehicle.create_publisher(Clock, "/clock", 10)
    steps = [0.3, -0.3, 1, -1, 10, -10, 3600, -3600, 864_000, -864_000, 5]
    scene.drive(4)
    for step in steps:
        scene.road.shift += round(step * SECOND)
        for shot in scene.road.take(16 if step == -1 else 4):  # half a second until time has caught up
            clock.publish(Clock(clock=Time(sec=shot.stamp // SECOND, nanosec=shot.stamp % SECOND)))
            scene.step(shot)
    checks.that(scene.set_parameter("perception", "use_sim_time", False).successful, "still sim time")
    scene.vehicle.destroy_publisher(clock)
    scene.settle()
    jumps = sum(scene.growth("perception", camera)["clock_jumps"] for camera in CAMERAS)
    checks.that(jumps == 3, f"{jumps} clock jumps counted, not 3")
    for camera in CAMERAS:
        losses = scene.core_losses(camera)
        checks.that(losses["dropped_late"], f"{camera}: no frame was late, the fault is too mild")
        scene.check_counts(checks, "perception", camera, losses)
    return len(steps)


@fault(
    "frames whose stamp is zero, between good ones",
    "none is fused, each object is counted as `no_stamp`; the others are not disturbed",
)
def stamps_of_zero(scene: Scene, checks: Checks) -> int:
    count = objects = 0
    for _ in range(scene.times(10)):
        scene.drive(2)
        shot = scene.road.next_at(0, "left")
        objects += len(scene.road.scene.ids)
        checks.that(not scene.step(shot), "the core takes a stamp of zero")
        count += 1
    scene.drive(2)
    scene.settle()
    scene.check_counts(checks, "perception", "left", {"dropped_no_stamp": objects})
    return count


@fault(
    "single frames stamped an hour, ten years or as far as a header can say into the future",
    "whichever camera speaks next, its good frame is fused at once (`clock_jumps` counts the way back)",
)
def stamps_of_the_future(scene: Scene, checks: Checks) -> int:
    return _single_strangers(scene, checks, FUTURE, other_first=True)


@fault(
    "single frames stamped in seconds since boot, or an hour in the past",
    "the first good frame of the same camera is fused (`clock_jumps` counts the way there)",
)
def stamps_of_another_epoch(scene: Scene, checks: Checks) -> int:
    return _single_strangers(scene, checks, OTHER_EPOCH, other_first=False)


def _single_strangers(scene: Scene, checks: Checks, stamps: tuple[Strange, ...], other_first: bool) -> int:
    count = 0
    for camera, other in (CAMERAS, CAMERAS[::-1]):
        for strange in stamps:
            scene.drive(scene.times(6))
            good = scene.road.next_of(camera).stamp
            stamp = strange(good)
            scene.step(scene.road.next_at(stamp, camera))
            for name in (other, camera) if other_first else (camera, other):
                shot = scene.road.next_of(name)
                checks.that(scene.step(shot), f"{name}: the first good frame after {stamp} was not fused")
            count += 1
    scene.settle()
    jumps = sum(scene.growth("perception", camera)["clock_jumps"] for camera in CAMERAS)
    checks.that(jumps == count, f"{jumps} clock jumps counted, {count} strange stamps sent")
    return count


@fault(
    "an image waits for boxes that never come; then time goes back and comes to the same stamp again",
    "the boxes of the second time are never laid onto the image of the first",
)
def an_old_image_in_waiting(scene: Scene, checks: Checks) -> int:
    count = scene.times(5)
    for _ in range(count):
        scene.drive(2)
        old = scene.road.next_of("left")
        scene.send_image(old)  # its boxes are lost
        scene.drive(2)
        scene.road.shift -= 10 * SECOND
        scene.drive(4)
        new = scene.road.next_at(old.stamp, "left")  # another picture
        scene.road.shift += 10 * SECOND + TENTH
        scene.step(new)
        scene.drive(2)
    return count
