"""What claims or unpacks to more than a machine has is refused, with little memory used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import lz4.frame
import pytest
from rosbags.rosbag2 import storage_mcap

from lla_fusion_ros.bags import files
from lla_fusion_ros.bags.compression import zstd
from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.types.errors import BagError, BundleError
from support.processes import REPOSITORY, child_environment

# A bag that cannot be read is an empty one with notes, not an error.
READ_AS_EMPTY = {"bag_mcap"}


def test_bombs_are_refused_under_a_limit_of_memory() -> None:
    paths = f"{REPOSITORY}:{REPOSITORY / 'test'}"
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.bombs"],
        env=child_environment({"PYTHONPATH": paths}),
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(rows) > 20
    assert [row for row in rows if row[0] == "accepted" and row[1] not in READ_AS_EMPTY] == []


def test_a_packed_bag_that_would_fill_the_disk_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(files, "_PLENTY", 1_000_000)
    bomb = tmp_path / "bag_0.mcap.zstd"
    bomb.write_bytes(zstd.compress(bytes(3_000_000)))
    with pytest.raises(BagError, match="no recording"):
        Bag(bomb)


def test_a_model_file_that_never_ends_is_refused() -> None:
    with pytest.raises(BundleError, match="no regular file"):
        load_bundle(Path("/dev/zero"))


@pytest.mark.parametrize("method", ["zstd", "lz4"])
def test_the_reader_of_intact_bags_unpacks_no_more_than_a_chunk_claims(method) -> None:
    """`rosbags` unpacks by a table of its own; ours must be in it, whichever version is installed."""
    packed = {"zstd": zstd.compress, "lz4": lz4.frame.compress}[method](bytes(1_000_000))
    assert storage_mcap.decompress(packed, method, 1_000_000, 0) == bytes(1_000_000)
    with pytest.raises(ValueError, match="more than the 1000 bytes it claims"):
        storage_mcap.decompress(packed, method, 1000, 0)
    with pytest.raises(ValueError, match="claims 1000000000000 bytes"):
        storage_mcap.decompress(packed, method, 10**12, 0)
