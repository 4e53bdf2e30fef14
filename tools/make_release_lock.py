"""Writes requirements-release.txt: every package of the release path with its version and SHA-256.

pip itself resolves (tools/setup_ros_wheels.txt, setup.py[test], constraints.txt) and reports the archives it
would install, with their hashes. `make setup LOCKED=1` then installs those archives or none: pip refuses
any file whose hash is not listed. Hashes are of one platform; run the tool on another one with the same
versions and its hashes are added.

example: .venv/bin/python tools/make_release_lock.py
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements-release.txt"
HEAD = """\
# Every package of `make setup LOCKED=1`, with the SHA-256 of its archive; made by tools/make_release_lock.py.
# Hashes are of {platforms}. torch is the CPU build.
"""
_PINNED = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>\S+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_PLATFORMS = re.compile(r"^# Hashes are of (.*?)\. ", re.MULTILINE)

Lock = dict[tuple[str, str], set[str]]  # name, version -> hashes


def resolve() -> dict[str, Any]:
    """pip's own report of what it would install into an empty environment."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [
            sys.executable,
            *("-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-build-isolation"),
            *("--report", str(report), "--constraint", str(ROOT / "constraints.txt")),
            *("--requirement", str(ROOT / "tools" / "setup_ros_wheels.txt"), "setuptools", f"{ROOT}[test]"),
        ]
        subprocess.run(command, check=True)
        return json.loads(report.read_text())


def lock_of(report: Mapping[str, Any]) -> Lock:
    """The archives of a report; whatever is no archive with a hash, but this package itself, is an error."""
    lock: Lock = {}
    for entry in report["install"]:
        name, version = entry["metadata"]["name"], entry["metadata"]["version"]
        digest = entry["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
        if digest:
            lock[re.sub(r"[-_.]+", "-", name).lower(), version] = {digest}
        elif name.replace("-", "_") != "lla_fusion_ros":
            raise SystemExit(f"make_release_lock: pip knows no hash of {name} {version}")
    return lock


def read_lock(text: str) -> Lock:
    lock: Lock = {}
    key = ("", "")
    for line in text.splitlines():
        if pinned := _PINNED.match(line):
            key = pinned["name"], pinned["version"]
        if found := _HASH.findall(line):
            lock.setdefault(key, set()).update(found)
    return lock


def lock_text(lock: Lock, platforms: str) -> str:
    lines = [
        " \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{digest}" for digest in sorted(hashes))])
        for (name, version), hashes in sorted(lock.items())
    ]
    return HEAD.format(platforms=platforms) + "\n".join(lines) + "\n"


def this_platform() -> str:
    return f"CPython {sys.version_info.major}.{sys.version_info.minor} on {sys.platform} {platform.machine()}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--report", type=Path, help="a report of `pip install --report`, instead of asking pip"
    )
    args = parser.parse_args()
    lock = lock_of(json.loads(args.report.read_text()) if args.report else resolve())
    old_text = LOCK.read_text() if LOCK.exists() else ""
    old = read_lock(old_text)
    known = _PLATFORMS.search(old_text)
    platforms = {this_platform()}
    if known and old.keys() == lock.keys():  # another platform's hashes of the same versions stay
        platforms |= set(known[1].split(", "))
        for key, hashes in old.items():
            lock[key] |= hashes
    LOCK.write_text(lock_text(lock, ", ".join(sorted(platforms))))
    print(f"{len(lock)} packages in {LOCK.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
