"""Brings the virtual environment in .venv to what the project needs, from nothing or from any half-way state.

Without a sourced ROS 2: ROS 2 Jazzy from wheels, the package and its tools, and the messages of interfaces/,
built: vision_msgs, and those of two detectors and Foxglove for the tests. `ROS=kilted` does the same with
Kilted in .venv-kilted. With a sourced one (ROS_DISTRO set): an environment on top of it that uses its rclpy
and vision_msgs; nothing is built. Each step leaves a stamp with a hash of what went into it, so that a second
run has nothing to do and a changed input repeats just its step and those after it. Standard library only.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from setup_interfaces import build_interfaces  # noqa: E402
from setup_progress import Progress, SetupError, clean_environment  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
FROM_WHEELS = ("jazzy", "kilted")
# After Jazzy, building messages needs one wheel more and one fewer.
ONLY_JAZZY, AFTER_JAZZY = "ros-jazzy-python-cmake-module", "ros-jazzy-ament-cmake-ros-core"
ROS = os.environ.get("ROS") or "jazzy"  # the distribution from wheels
VENV = ROOT / (".venv" if ROS == "jazzy" else f".venv-{ROS}")
PYTHON = VENV / "bin" / "python"
WHEELS = ROOT / "tools" / "setup_ros_wheels.txt"
CONSTRAINTS = ROOT / "constraints.txt"
ROS_PINS = ROOT / f"constraints-{ROS}.txt"  # of another distribution, in the place of Jazzy's
LOCK = ROOT / "requirements-release.txt"
LOCKED = os.environ.get("LOCKED", "") not in ("", "0")  # install exactly the archives whose hashes are known
INTERFACES = ROOT / "interfaces"
MESSAGES = ("vision_msgs", "tf2_msgs")
OTHER_MESSAGES = ("yolo_msgs", "tier4_perception_msgs", "foxglove_msgs")
NEEDED_GIGABYTES = 3.0
APT = "Debian, Ubuntu: sudo apt install"

# Tools whose versions matter for what the checks say, and torch, whose newest version may weigh gigabytes.
# On top of a sourced ROS everything else has to fit what ROS brings, first of all its numpy.
PINNED_ON_ROS = ("mypy", "ruff", "torch")

CHECKED_MODULES = (
    "rclpy",
    "vision_msgs.msg",
    "tf2_msgs.msg",
    "sensor_msgs.msg",
    "diagnostic_msgs.msg",
    "torch",
    "cv2",
    "scipy.optimize",
    "matplotlib.pyplot",
    "rosbags.highlevel",
    "rich.progress",
    "safetensors.numpy",
    "hypothesis",
    "pytest",
    "lla_fusion_ros",
)

Step = tuple[str, str, str, Callable[[Progress], None]]  # key, title, hash of the inputs, what to do


def main() -> int:
    try:
        set_up()
    except SetupError as error:
        print(f"Set-up failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nSet-up interrupted; the next run goes on from here.", file=sys.stderr)
        return 130
    return 0


def set_up() -> None:
    """Do the steps whose stamps are missing or out of date; a second set-up at the same time waits."""
    lock = os.open(ROOT, os.O_RDONLY)  # the kernel frees it when this process ends, however it ends
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        do_outdated_steps()
    finally:
        os.close(lock)


def do_outdated_steps() -> None:
    distribution = os.environ.get("ROS_DISTRO", "")
    steps = ros_steps(distribution) if distribution else wheel_steps()
    first = next((n for n, step in enumerate(steps) if read_stamp(step[0]) != step[2]), None)
    if first is None:
        return
    check_machine(builds=not distribution)
    begin = time.monotonic()
    source = f"the sourced ROS 2 {distribution}" if distribution else f"ROS 2 {ROS.capitalize()} from wheels"
    print(f"Setting up {VENV.name} with {source}; only the first time takes minutes.", flush=True)
    progress = Progress(len(steps) - first, VENV / "setup.log")
    for key, title, inputs, action in steps[first:]:
        stamp_path(key).unlink(missing_ok=True)
        progress.start(title)
        action(progress)
        write_stamp(key, inputs)
    print(f"Set up in {time.monotonic() - begin:.0f} s.", flush=True)


def wheel_steps() -> list[Step]:
    if ROS not in FROM_WHEELS or (LOCKED and ROS != "jazzy"):
        raise SetupError(
            f"ROS={ROS} cannot be set up{' with LOCKED=1' if LOCKED else ''}: wheels are known of "
            f"{', '.join(FROM_WHEELS)}, locked ones of jazzy; source any other ROS 2 instead"
        )
    inputs = [LOCK] if LOCKED else [WHEELS, CONSTRAINTS, *([] if ROS == "jazzy" else [ROS_PINS])]
    requirements = digest([*inputs, ROOT / "setup.py", ROOT / "setup.cfg"])
    interfaces = requirements
    for name in MESSAGES:
        interfaces = digest_of_folder(name, interfaces)
    detectors = interfaces
    for name in OTHER_MESSAGES:
        detectors = digest_of_folder(name, detectors)
    return [
        ("venv", "Python environment", identity(""), lambda _: make_venv(on_ros=False)),
        ("packages", f"packages: ROS 2 {ROS.capitalize()}, torch, tools", requirements, install_wheels),
        (
            "vision_msgs",
            "vision_msgs and tf2_msgs, built from interfaces/",
            interfaces,
            lambda progress: build_messages(MESSAGES, progress),
        ),
        (
            "detector_msgs",
            "messages of detectors and Foxglove for the tests, built from interfaces/",
            detectors,
            lambda progress: build_messages(OTHER_MESSAGES, progress),
        ),
        (
            "check",
            "check that everything imports",
            detectors,
            check_imports,
        ),
    ]


def ros_steps(distribution: str) -> list[Step]:
    requirements = digest(
        [CONSTRAINTS, ROOT / "setup.py", ROOT / "setup.cfg"], os.environ.get("AMENT_PREFIX_PATH", "")
    )
    return [
        ("venv", "Python environment", identity(distribution), lambda _: make_venv(on_ros=True)),
        ("packages", "packages that ROS does not bring", requirements, install_on_ros),
        (
            "check",
            "check that everything imports",
            requirements,
            check_imports,
        ),
    ]


def check_machine(builds: bool) -> None:
    """Say in one sentence what is missing before minutes are spent."""
    free = shutil.disk_usage(ROOT).free / 1e9
    if free < NEEDED_GIGABYTES and read_stamp("packages") is None:
        raise SetupError(
            f"{NEEDED_GIGABYTES:g} GB of disk are needed and {free:.1f} GB are free; make room in {ROOT}"
        )
    if not builds:
        return
    for names, package in [
        (("c++", "g++"), "g++"),
        (("cc", "gcc"), "gcc"),
        (("cmake",), "cmake"),
        (("make",), "make"),
    ]:
        if not any(shutil.which(name) for name in names):
            raise SetupError(f"{names[-1]} is missing; install it ({APT} {package})")
    if not Path(sysconfig.get_paths()["include"], "Python.h").is_file():
        raise SetupError(f"Python.h of {sys.executable} is missing; install it ({APT} python3-dev)")


def make_venv(on_ros: bool) -> None:
    """A fresh environment, in place of whatever stood there."""
    if VENV.exists():
        print(
            "      removing the .venv that is unfinished or made for another Python, folder or ROS",
            flush=True,
        )
        shutil.rmtree(VENV)
    options = ["--system-site-packages"] if on_ros else []
    made = subprocess.run(
        [sys.executable, "-m", "venv", *options, str(VENV)],
        capture_output=True,
        text=True,
        env=clean_environment(),
    )
    if made.returncode != 0:
        shutil.rmtree(VENV, ignore_errors=True)
        if "ensurepip" in made.stdout + made.stderr:
            raise SetupError(f"Python's venv is missing; install it ({APT} python3-venv)")
        raise SetupError(
            f"`{sys.executable} -m venv {VENV}` failed: {(made.stderr or made.stdout).strip()[-300:]}"
        )


def install_wheels(progress: Progress) -> None:
    if LOCKED:
        first = VENV / "setuptools-locked.txt"  # what the few packages without a wheel are built with
        first.write_text("".join(re.findall(r"^setuptools==(?:.*\\\n)*.*\n", LOCK.read_text(), re.MULTILINE)))
        for requirements in (first, LOCK):
            pip(progress, ["--require-hashes", "--no-deps", "--requirement", str(requirements)])
        pip(progress, ["--no-deps", "--editable", str(ROOT)])
        return
    wheels, pins = WHEELS, CONSTRAINTS
    if ROS != "jazzy":
        wheels, pins = VENV / WHEELS.name, VENV / ROS_PINS.name
        wheels.write_text(WHEELS.read_text().replace(ONLY_JAZZY, AFTER_JAZZY).replace("-jazzy-", f"-{ROS}-"))
        others = [line for line in CONSTRAINTS.read_text().splitlines() if not line.startswith("ros-")]
        pins.write_text("\n".join([*others, ROS_PINS.read_text()]))
    # setuptools first: the package is then built with it, not with another one in a throw-away environment.
    pip(progress, ["setuptools"], pins)
    pip(progress, ["-r", str(wheels), "--editable", f"{ROOT}[test]"], pins)


def install_on_ros(progress: Progress) -> None:
    """Only what is missing; above all, numpy stays the one that ROS's message packages were compiled with."""
    pins = [line for line in CONSTRAINTS.read_text().splitlines() if line.partition("==")[0] in PINNED_ON_ROS]
    numpy_version = subprocess.run(
        [PYTHON, "-c", "import numpy; print(numpy.__version__)"],
        capture_output=True,
        text=True,
        env=clean_environment(),
    ).stdout.strip()
    if numpy_version:
        pins.append(f"numpy=={numpy_version}")
    constraints = VENV / "constraints-on-ros.txt"
    constraints.write_text("\n".join(pins) + "\n")
    pip(progress, ["setuptools<80"], constraints)  # colcon needs the `develop` command of the older ones
    pip(progress, ["--editable", f"{ROOT}[test]"], constraints)


def pip(progress: Progress, arguments: list[str], constraints: Path | None = None) -> None:
    forget_half_installed_packages()
    command: list[str | Path] = [
        PYTHON,
        "-m",
        "pip",
        "install",
        "--no-build-isolation",
        "--disable-pip-version-check",
    ]
    # Compiling thousands of modules would take a minute; those that are used get compiled by the check.
    command += ["--no-compile", "--progress-bar", "off"]
    if constraints is not None:
        command += ["--constraint", constraints]
    command += arguments
    progress.run(command, clean_environment(), "pip could not install the packages; read the lines above")


def forget_half_installed_packages() -> None:
    """pip takes a package for installed once its metadata is there, even if it was killed while copying.

    INSTALLER is the last file it adds, so metadata without it belongs to such a package, and goes.
    """
    for metadata in VENV.glob("lib/python*/site-packages/*.dist-info"):
        if not (metadata / "INSTALLER").is_file():
            shutil.rmtree(metadata)


def build_messages(names: Iterable[str], progress: Progress) -> None:
    for name in names:
        build_interfaces(INTERFACES / name, VENV, progress)


def check_imports(progress: Progress) -> None:
    """Import what the project uses, which also leaves the compiled modules for all later starts."""
    for module in CHECKED_MODULES:
        top = module.partition(".")[0]
        remedy = "`make clean` and try again"
        if os.environ.get("ROS_DISTRO") and (top == "rclpy" or top.endswith("_msgs")):
            remedy = f"sudo apt install ros-{os.environ['ROS_DISTRO']}-{top.replace('_', '-')}"
        command: list[str | Path] = [PYTHON, "-c", f"import {module}"]
        progress.run(command, clean_environment(), f"{top} cannot be imported; {remedy}", lines_on_failure=0)


def identity(distribution: str) -> str:
    """What a virtual environment cannot outlive: another place, another Python, another ROS."""
    return digest([], f"{VENV} {sys.version} {sys.base_prefix} {distribution}")


def digest(paths: Iterable[Path], more: str = "") -> str:
    total = hashlib.sha256(more.encode())
    for path in paths:
        total.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


def digest_of_folder(name: str, more: str) -> str:
    """Of a package of interfaces/."""
    return digest(sorted(path for path in (INTERFACES / name).rglob("*") if path.is_file()), more)


def stamp_path(key: str) -> Path:
    return VENV / "stamps" / f"{key}.json"


def read_stamp(key: str) -> str | None:
    try:
        return json.loads(stamp_path(key).read_text())["inputs"]
    except (OSError, ValueError, KeyError):
        return None


def write_stamp(key: str, inputs: str) -> None:
    path = stamp_path(key)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"inputs": inputs}))
    fresh.replace(path)


if __name__ == "__main__":
    sys.exit(main())
