"""Machines that do not help: full disks, read-only homes, no shared memory."""

from __future__ import annotations

import subprocess
from pathlib import Path

from faults.drive import CAMERAS
from faults.outcome import Checks, NotPossible
from faults.registry import fault
from faults.scene import NODES, Scene
from faults.stage import PATIENCE, Stage
from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.types.errors import LlaFusionError

UNSHARE = ("unshare", "--mount", "--map-root-user", "--propagation", "private", "sh", "-c")
SMALL = "size=3m"  # a bag is written in pieces of one megabyte


def with_mounts(*mounts: tuple[str, Path | str], afterwards: str = "") -> list[str]:
    """A command line that starts another one where file systems of its own (options, place) are mounted."""
    lines = [f"mount -t tmpfs -o {options} tmpfs '{place}' || exit 99" for options, place in mounts]
    last = 'exec "$@"' if not afterwards else f'"$@"; code=$?; {afterwards}; exit $code'
    return [*UNSHARE, "\n".join([*lines, last]), "sh"]


def require_mounts(folder: Path) -> None:
    """Some containers do not let anybody mount anything."""
    place = folder / "probe"
    place.mkdir(exist_ok=True)
    try:
        done = subprocess.run([*with_mounts(("size=64k", place)), "true"], capture_output=True, text=True)
    except OSError as error:
        raise NotPossible(f"unshare cannot be run: {error}") from None
    if done.returncode:
        raise NotPossible(f"no private mounts on this machine: {done.stderr.strip()}")


def checked_drive(scene: Scene, checks: Checks, count: int = 20) -> None:
    """A piece of the drive, in which everything must be as ever."""
    scene.drive(count)
    scene.recover()
    scene.diagnosed.fresh(scene.nodes)
    checks.that(not scene.wrong, f"{len(scene.wrong)} wrong answers, first: {scene.wrong[:1]}")
    for camera in CAMERAS:
        scene.check_counts(checks, scene.nodes[-1], camera, {})
    for name, process in scene.processes.items():
        process.check()
        checks.that("Traceback" not in process.log, f"{name} printed a traceback:\n{process.log[-3000:]}")


@fault(
    "/dev/shm cannot be written, so that Fast DDS has no shared memory, for one node",
    "it talks over UDP: every frame is fused",
    scene="alone",
    bounded=False,
)
def no_shared_memory(stage: Stage, checks: Checks) -> int:
    require_mounts(stage.folder)
    scene = Scene(stage, NODES["perception"], prefix=with_mounts(("ro,size=64k", "/dev/shm")))
    checked_drive(scene, checks)
    return 1


@fault(
    "a home that cannot be written, and no other place for logs",
    "the node starts and works, or says in one sentence what it needs",
    scene="alone",
    bounded=False,
)
def read_only_home(stage: Stage, checks: Checks) -> int:
    require_mounts(stage.folder)
    home = stage.folder / "home"
    home.mkdir()
    surroundings = {"HOME": str(home), "ROS_LOG_DIR": "", "ROS_HOME": "", "XDG_CACHE_HOME": ""}
    scene = Scene(stage, NODES["perception"], prefix=with_mounts(("ro,size=64k", home)), env=surroundings)
    checked_drive(scene, checks)
    return 1


@fault(
    "the disk is full while a bag of the fused classes is recorded",
    "the recorder says so in one sentence and ends with code 1, what it has written can be read, and "
    "perception does not notice",
    scene="alone",
    bounded=False,
)
def disk_full_while_a_bag_is_written(stage: Stage, checks: Checks) -> int:
    require_mounts(stage.folder)
    small, saved = stage.folder / "small", stage.folder / "saved"
    small.mkdir()
    scene = Scene(stage, NODES["perception"])
    recorder = stage.start(
        "lla_fusion_ros.ros recorder",
        "recorder",
        "--out",
        str(small / "bag"),
        "--cameras",
        *CAMERAS,
        prefix=with_mounts((SMALL, small), afterwards=f"cp -r '{small}/bag' '{saved}'"),
    )
    recorder.wait_for_log('"ready"', PATIENCE)
    recorder.expect_end()
    scene.play_until(None, lambda: recorder.popen.poll() is not None, "the end of the recorder")
    code, log = recorder.wait(PATIENCE), recorder.log
    stage.forget(recorder)
    checks.that(code == 1, f"the recorder ended with code {code}: {log[-1000:]}")
    last = log.strip().splitlines()[-1]
    checks.that(last.startswith("recorder: ") and "No space left" in last, f"it said: {log[-1500:]}")
    checks.that("Traceback" not in log, f"the recorder printed a traceback:\n{log[-3000:]}")
    try:
        with Bag(saved) as bag:
            kept = sum(1 for _ in bag.messages())
        checks.that(kept > 10, f"{kept} messages can be read")
    except LlaFusionError as error:
        checks.that(False, f"the bag cannot be read: {error}")
    scene.drain()
    scene.judge()
    checked_drive(scene, checks)
    return 1


SAVE_TWICE = """
import sys
from lla_fusion_ros.bundle import load_bundle, save_bundle
from lla_fusion_ros.types.errors import LlaFusionError
from lla_fusion_ros.bundle.resources import find_model

bundle = load_bundle(find_model("signworld"))
save_bundle(bundle, sys.argv[1])
with open(sys.argv[2], "wb", buffering=0) as rest:
    try:
        while True:
            rest.write(bytes(4096))
    except OSError:
        pass
try:
    save_bundle(bundle, sys.argv[1])
except LlaFusionError as error:
    sys.exit(str(error))
"""


@fault(
    "the disk is full while a bundle is written over an older one",
    "one sentence, exit code 1, and the older bundle is whole; no half-written file stays",
    scene="alone",
    bounded=False,
)
def disk_full_while_a_bundle_is_written(stage: Stage, checks: Checks) -> int:
    require_mounts(stage.folder)
    small, saved = stage.folder / "disk", stage.folder / "kept"
    small.mkdir()
    prefix = with_mounts(("size=64m", small), afterwards=f"cp -r '{small}' '{saved}'")
    target = small / "model.safetensors"
    writer = stage.start(SAVE_TWICE, "writer", str(target), str(small / "rest"), prefix=prefix)
    code, log = writer.wait(PATIENCE), writer.log
    stage.forget(writer)
    last = (log.strip().splitlines() or [""])[-1]
    checks.that(code == 1, f"the writer ended with code {code}: {log[-1000:]}")
    checks.that("model.safetensors" in last and "No space left" in last, f"it said: {log[-1000:]}")
    checks.that("Traceback" not in log, f"a traceback:\n{log[-2000:]}")
    found = sorted(path.name for path in saved.iterdir())
    checks.that(found == ["model.safetensors", "rest"], f"the folder holds {found}")
    try:
        load_bundle(saved / "model.safetensors")
        checks.held += 1
    except LlaFusionError as error:
        checks.that(False, f"the older bundle is damaged: {error}")
    return 1
