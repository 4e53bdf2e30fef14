"""requirements-release.txt: every package of the release path, at the tested version, by hash."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

REPOSITORY = Path(__file__).resolve().parents[2]
LOCK = (REPOSITORY / "requirements-release.txt").read_text()


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("lock", REPOSITORY / "tools" / "make_release_lock.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def constraints() -> dict[str, str]:
    lines = (REPOSITORY / "constraints.txt").read_text().splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonical(pin.name): str(pin.specifier).removeprefix("==") for pin in pins}


def test_every_package_has_a_version_and_a_hash(tool) -> None:
    lock = tool.read_lock(LOCK)
    assert len(lock) > 150 and all(hashes for hashes in lock.values())
    requirements = [line for line in LOCK.splitlines() if line and not line.startswith(("#", " "))]
    assert len(requirements) == len(lock)


def test_versions_are_those_of_the_constraints_that_the_tests_run_with(tool) -> None:
    pins = constraints()
    for name, version in tool.read_lock(LOCK):
        assert version.partition("+")[0] == pins[name], f"{name}: run tools/make_release_lock.py again"


def test_no_place_is_named_in_it() -> None:
    assert "://" not in LOCK and "index-url" not in LOCK and "find-links" not in LOCK


def test_what_the_tool_writes_it_reads_back_and_other_platforms_add_up(tool) -> None:
    lock = {("numpy", "2.0"): {"a" * 64, "b" * 64}, ("torch", "2.0+cpu"): {"c" * 64}}
    text = tool.lock_text(lock, "CPython 3.11 on linux x86_64")
    assert tool.read_lock(text) == lock


def test_a_package_without_a_hash_is_refused(tool) -> None:
    entry = {"metadata": {"name": "evil", "version": "1"}, "download_info": {"url": "x"}}
    with pytest.raises(SystemExit, match="evil"):
        tool.lock_of({"install": [entry]})
    own = {"metadata": {"name": "lla_fusion_ros", "version": "1"}, "download_info": {"dir_info": {}}}
    assert tool.lock_of({"install": [own]}) == {}
