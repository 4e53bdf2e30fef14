"""The same networks and data through laplace-torch, in a virtual environment of its own.

It is made on demand outside the repository. It sees this environment's packages, so that both run on the
very same torch, and adds laplace-torch without its dependencies (its torchvision would pull another torch).
"""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
import venv
from pathlib import Path
from typing import Any

from lla_fusion_ros.errors import LlaFusionError

VERSION = "0.3"
PACKAGES = (
    f"laplace-torch=={VERSION}",
    "asdfghjkl==0.1a4",
    "backpack-for-pytorch",
    "curvlinops-for-pytorch",
    "einconv",
    "einops",
    "jaxtyping",
    "lightning-utilities",
    "linear_operator",
    "opt-einsum",
    "torchmetrics",
    "tqdm",
    "unfoldNd",
    "wadler-lindig",
)
SCRIPT = Path(__file__).with_name("laplace_torch_script.py")
PATIENCE = 900  # seconds


class CannotCompare(LlaFusionError):
    """laplace-torch cannot be had here; the sentence says why."""


def folder() -> Path:
    """Where the virtual environment is kept between runs."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "lla_fusion_ros" / f"laplace-torch-{VERSION}"


def set_up(place: Path) -> Path:
    """The Python of the virtual environment, made where it is not there yet."""
    python = place / "bin" / "python"
    done = place / "installed"
    if done.exists():
        return python
    try:
        venv.create(place, with_pip=True, clear=True)
        site = Path(_ask(python, "import sysconfig; print(sysconfig.get_paths()['purelib'])"))
        (site / "this_environment.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
        command = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", *PACKAGES]
        _run(command, "installing laplace-torch")
        _ask(python, "import laplace")
    except (OSError, subprocess.SubprocessError) as error:
        raise CannotCompare(f"laplace-torch {VERSION} cannot be set up in '{place}': {error}") from None
    done.touch()
    return python


def measure_laplace_torch(rounds: int, crops: int, place: Path | None = None) -> dict[str, Any]:
    """{"records": of prediction, "fit": [record]}, measured in turns within one process."""
    python = set_up(place or folder())
    answer = _run([str(python), str(SCRIPT), str(rounds), str(crops)], "comparing with laplace-torch")
    result: dict[str, Any] = json.loads(answer.splitlines()[-1])
    return result


def _ask(python: Path, source: str) -> str:
    return _run([str(python), "-c", source], "asking the new environment").strip()


def _run(command: list[str], what: str) -> str:
    source = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": source}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment)
    except subprocess.TimeoutExpired:
        raise CannotCompare(f"{what} took longer than {PATIENCE} s") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise CannotCompare(f"{what} failed: {last}")
    return done.stdout
