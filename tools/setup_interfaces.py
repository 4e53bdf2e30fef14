"""Builds a package of interfaces/ against the ROS wheels of a virtual environment and installs it there."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from setup_progress import Progress, clean_environment

# The wheels' CMake files name folders of the machine they were built on.
BUILD_MACHINE_INCLUDE = re.compile(r"/opt/python/cp\d+-cp\d+/include/python3\.\d+")
BUILD_MACHINE_NUMPY = re.compile(
    r"/opt/python/cp\d+-cp\d+/lib/python3\.\d+/site-packages/numpy/_?core/include"
)


def build_interfaces(source: Path, venv: Path, progress: Progress) -> None:
    """Configure, build and install; a build folder left by a killed run is continued."""
    point_cmake_files_to(venv)
    build = venv / "build" / source.name
    env = clean_environment()
    env["AMENT_PREFIX_PATH"] = str(venv)
    env["PATH"] = f"{venv / 'bin'}{os.pathsep}{env.get('PATH', '')}"
    configure: list[str | Path] = [
        "cmake",
        "-S",
        source,
        "-B",
        build,
        f"-DCMAKE_PREFIX_PATH={venv}",
        f"-DCMAKE_INSTALL_PREFIX={venv}",
        f"-DPython3_EXECUTABLE={venv / 'bin' / 'python'}",
        "-DBUILD_TESTING=OFF",
        "-DCMAKE_BUILD_TYPE=Release",
    ]
    failure = f"{source.name} did not build; `make clean` and try again, and report the log if it stays"
    progress.run(configure, env, failure)
    progress.run(["cmake", "--build", build, "--parallel", str(os.cpu_count() or 1)], env, failure)
    progress.run(["cmake", "--install", build], env, failure)


def point_cmake_files_to(venv: Path) -> None:
    """Replace the build machine's Python and numpy folders by this environment's."""
    ask = "import numpy, sysconfig; print(sysconfig.get_paths()['include']); print(numpy.get_include())"
    answer = subprocess.run(
        [venv / "bin" / "python", "-c", ask],
        capture_output=True,
        text=True,
        check=True,
        env=clean_environment(),
    )
    python_include, numpy_include = answer.stdout.split("\n")[:2]
    for path in venv.glob("share/*/cmake/*.cmake"):
        old = path.read_text(encoding="utf-8")
        new = BUILD_MACHINE_NUMPY.sub(lambda _: numpy_include, old)
        new = BUILD_MACHINE_INCLUDE.sub(lambda _: python_include, new)
        if new != old:
            # Beside it and renamed, so that a killed run leaves the old file or the new one.
            fresh = path.with_suffix(".new")
            fresh.write_text(new, encoding="utf-8")
            fresh.replace(path)
