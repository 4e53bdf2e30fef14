"""What a network does to messages: loses, doubles, swaps and hoards them."""

from __future__ import annotations

from collections import Counter

import numpy as np

from faults.core import Shot
from faults.drive import CAMERAS, SECOND
from faults.outcome import Checks
from faults.registry import fault
from faults.scene import PARAMS, Scene


@fault(
    "30% of all messages, images and detections alike, are lost at random over a lap and a half",
    "every frame of which both messages came is fused, none with the other's boxes; halves are counted "
    "(`images_without_detections`, `detections_without_image`) once they have waited in vain",
)
def a_third_lost(scene: Scene, checks: Checks) -> int:
    rng = np.random.default_rng(7)
    lost: Counter[tuple[str, str]] = Counter()
    for shot in scene.road.take(170):
        image, boxes = rng.random(2) > 0.3
        if image and boxes:
            scene.step(shot)
        elif image:
            scene.send_image(shot)
            lost[shot.camera, "detections"] += 1
        elif boxes:
            scene.send_boxes(shot)
            lost[shot.camera, "image"] += 1
        else:
            lost[shot.camera, "both"] += 1
    scene.settle()
    for camera in CAMERAS:
        check_halves(scene, checks, camera, lost[camera, "detections"], lost[camera, "image"])
    return sum(lost.values()) + lost["left", "both"] + lost["right", "both"]


@fault(
    "nothing for a while, then a second of frames at once; at last 15 seconds of one camera at once",
    "the newest frame is fused, and every other one is fused or counted: `queue_full` where the networks "
    "were behind, `images_lost` and `detections_lost` where DDS gave up",
)
def bursts(scene: Scene, checks: Checks) -> int:
    checks.that(scene.set_parameter("perception", "queue_depth", 4).successful, "queue_depth not set")
    sent: Counter[str] = Counter()
    answered: Counter[str] = Counter()
    for _ in range(scene.times(5)):
        burst = list(scene.road.take(20))
        for shot in burst:
            scene.send(shot)
        sent.update(shot.camera for shot in burst)
        answered.update(camera for camera, _ in scene.recover())
        sent.update(CAMERAS)
    burst = [scene.road.next_of("right") for _ in range(150)]
    for shot in burst:
        scene.send(shot)
    sent.update(shot.camera for shot in burst)
    answered.update(camera for camera, _ in scene.recover())
    sent.update(CAMERAS)
    scene.diagnosed.fresh(scene.nodes)
    for camera in CAMERAS:
        check_balance(scene, checks, camera, sent[camera], answered[camera])
    restored = scene.set_parameter("perception", "queue_depth", PARAMS["queue_depth"])
    checks.that(restored.successful, "queue_depth not set back")
    return scene.times(5) + 1


def check_halves(scene: Scene, checks: Checks, camera: str, images: int, boxes: int, **more: int) -> None:
    """So many images and boxes without their other half: they wait for it (`sync_wait`) or are counted."""
    found = scene.growth("perception", camera)
    lonely = found["images_without_detections"] + found["waiting_images"]
    checks.that(lonely == images, f"{camera}: {images} images sent alone, {lonely} accounted for")
    lonely = found["dropped_detections_without_image"] + found["waiting_detections"]
    checks.that(lonely == boxes, f"{camera}: {boxes} detections sent alone, {lonely} accounted for")
    rest = {"dropped_detections_without_image": found["dropped_detections_without_image"], **more}
    checks.counts(found, rest, camera)


def check_balance(scene: Scene, checks: Checks, camera: str, sent: int, answered: int) -> None:
    """Every frame that was sent is answered, waits, or is counted as lost."""
    found = scene.growth("perception", camera)
    for kind, lost in (("images", "dropped_images_lost"), ("detections", "dropped_detections_lost")):
        arrived = found[kind] + found[lost]
        checks.that(arrived == sent, f"{camera}: {sent} {kind} sent, {arrived} received or counted as lost")
    used = (
        answered
        + found["unused_frames"]
        + found["dropped_queue_full"]
        + found["images_without_detections"]
        + found["waiting_images"]
    )
    checks.that(
        used == found["images"], f"{camera}: {found['images']} images came, {used} accounted for: {found}"
    )


@fault(
    "every message twice: whole frames, at once or when the other camera is 0.8 s ahead, and boxes alone",
    "the copy changes nothing and is counted (`duplicate`, `detections_without_image`)",
)
def duplicates(scene: Scene, checks: Checks) -> int:
    copies: Counter[str] = Counter()
    frames = scene.times(20)
    for shot in scene.road.take(frames):
        scene.step(shot)
        scene.step(shot)
        copies[shot.camera] += len(scene.road.scene.ids)
    behind = scene.times(5)
    for _ in range(behind):
        shot = scene.road.next_of("left")
        copies["left"] += len(scene.road.scene.ids)
        scene.step(shot)
        for _ in range(8):
            scene.step(scene.road.next_of("right"))
        scene.step(shot)
    boxes = 15
    for _ in range(boxes):
        shot = scene.road.next_of("left")
        scene.step(shot)
        scene.send_boxes(shot)
    scene.settle()
    check_halves(scene, checks, "left", 0, boxes, dropped_duplicate=copies["left"])
    scene.check_counts(checks, "perception", "right", {"dropped_duplicate": copies["right"]})
    return frames + behind + boxes


@fault(
    "every message is held back for a random time of up to 1 s, images and boxes apart",
    "frames at most `max_lateness` (0.5 s) behind the newest are fused in whatever order they come, the "
    "others counted as `late`",
)
def reordering(scene: Scene, checks: Checks) -> int:
    rng = np.random.default_rng(8)
    shots = list(scene.road.take(60))
    parts: list[tuple[float, Shot, str]] = []
    for shot in shots:
        delay = rng.uniform(0, 0.9)
        parts += [
            (shot.stamp / SECOND + delay + rng.uniform(0, 0.1), shot, part) for part in ("image", "boxes")
        ]
    parts.sort(key=lambda part: part[0])
    seen: Counter[Shot] = Counter()
    for _, shot, part in parts:
        seen[shot] += 1
        scene.send_part(shot, part, completes=seen[shot] == 2)
    scene.settle()
    late = sum(scene.core_losses(camera)["dropped_late"] for camera in CAMERAS)
    checks.that(late, "no frame was late, the fault is too mild")
    for camera in CAMERAS:
        losses = scene.core_losses(camera)
        scene.check_counts(checks, "perception", camera, losses)
    return len(parts)
