"""Checks the package against every Python that a ROS 2 distribution brings: 3.10 (Humble) to 3.14 (Lyrical).

Syntax by ruff, the standard library by mypy with that version's names, and whether the package index has what
the nodes need as wheels of that version. Without a network the last one can be left out: --no-index.

example: python tools/check_pythons.py --no-index
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
FOLDERS = ("lla_fusion_ros", "launch", "setup.py")
# Other packages are left out: those installed here are of one Python. Of Python's own modules mypy says:
MYPY = "[mypy]\nfollow_imports = skip\ncheck_untyped_defs = True\n"
_NOT_THERE = re.compile(r'error: Module .*has no attribute|module named "(?P<module>\w+)')
WHEELS = ("numpy", "opencv-python-headless", "PyYAML", "safetensors", "scipy", "torch", "onnxruntime")


def run(*command: str) -> str:
    """What a command complains about; empty where it is content."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{done.stdout}{done.stderr}".strip()


def missing(*command: str) -> str:
    """Names of Python's own modules that are not there, in what mypy says."""
    told = [(line, _NOT_THERE.search(line)) for line in run(*command).splitlines()]
    own = {None, *sys.stdlib_module_names}
    return "\n".join(line for line, found in told if found and found["module"] in own)


def complaints(version: str, with_index: bool, folder: Path) -> dict[str, str]:
    """By what was checked."""
    found = {
        "syntax": run(
            *(sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E9", "--no-cache"),
            *("--target-version", f"py{version.replace('.', '')}", *FOLDERS),
        ),
        "standard library": missing(
            *(sys.executable, "-m", "mypy", "--config-file", str(folder / "mypy.ini"), "--no-site-packages"),
            *("--cache-dir", str(folder / "cache"), "--python-version", version, "lla_fusion_ros"),
        ),
    }
    if with_index:
        found["wheels"] = run(
            *(
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--dry-run",
                "--ignore-installed",
                "--no-deps",
            ),
            *("--python-version", version, "--only-binary", ":all:", "--target", str(folder), *WHEELS),
        )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--no-index", action="store_true", help="do not ask the package index for wheels")
    options = parser.parse_args()
    bad = False
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "mypy.ini").write_text(MYPY)
        for version in VERSIONS:
            found = complaints(version, not options.no_index, Path(folder))
            print(
                f"Python {version}: {', '.join(found)}" + ("" if any(found.values()) else ": well"),
                flush=True,
            )
            for what, text in found.items():
                if text:
                    bad = True
                    print(f"  {what}:\n{text}", flush=True)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
