"""Which bags are meant: bags, folders of bags, globs, and text files that list them."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lla_fusion_ros.bags.files import COMPRESSED_SUFFIXES, STORAGE_SUFFIXES
from lla_fusion_ros.types.errors import InputError

MANIFESTS = (".txt", ".list")
FLEET_FILE = "fleet.json"  # marks a folder of results
_RESULTS = "_fused"  # and so ends the name of a replay's results
_ENDINGS = tuple(storage + packed for storage in STORAGE_SUFFIXES for packed in ("", *COMPRESSED_SUFFIXES))


def means_many(words: Sequence[str]) -> bool:
    """Whether the words stand for a collection, even if it holds one bag or none."""
    if len(words) != 1:
        return True
    path = Path(words[0])
    if not path.exists():
        return glob.has_magic(words[0])
    return path.suffix in MANIFESTS if path.is_file() else not is_bag(path) and any(_below(path))


def find_bags(words: Iterable[str]) -> list[Path]:
    """Absolute paths, each once, sorted; a word that stands for nothing is refused."""
    return sorted({Path(os.path.abspath(path)) for word in words for path in _expand(word)})


def is_bag(folder: Path) -> bool:
    """A folder with storage files in it is one bag, also where its metadata.yaml is missing."""
    return (folder / "metadata.yaml").exists() or any(name.endswith(_ENDINGS) for name in os.listdir(folder))


def bag_name(path: Path) -> str:
    """The name of a bag without what tells its storage."""
    name = path.name
    for ending in (*COMPRESSED_SUFFIXES, *STORAGE_SUFFIXES):
        name = name.removesuffix(ending)
    return name


def _expand(word: str) -> list[Path]:
    path = Path(word)
    if path.is_file():
        return _listed(path) if path.suffix in MANIFESTS else [path]
    if path.is_dir():
        found = [path] if is_bag(path) else list(_below(path))
        if not found:
            raise InputError(f"folder '{path}' holds no bag; a bag is a folder with .mcap or .db3 files")
        return found
    if glob.has_magic(word):
        names = glob.glob(word, recursive=True)
        found = [Path(name) for name in names if name.endswith(_ENDINGS) or os.path.isdir(name)]
        bags = [bag for place in found for bag in (_expand(str(place)) if _holds_bags(place) else ())]
        if not bags:
            raise InputError(f"no bag matches '{word}'")
        return bags
    raise InputError(f"bag '{word}' does not exist")


def _holds_bags(place: Path) -> bool:
    return place.is_file() or is_bag(place) or any(_below(place))


def _below(folder: Path) -> Iterator[Path]:
    """Bags in a folder and its subfolders, results of earlier runs left out."""
    for place, folders, _ in os.walk(folder):
        here = Path(place)
        if (here / FLEET_FILE).exists():
            folders.clear()
        elif is_bag(here):
            folders.clear()
            yield here
        else:
            folders[:] = sorted(f for f in folders if not f.startswith(".") and not f.endswith(_RESULTS))


def _listed(file: Path) -> list[Path]:
    """A path or a glob per line, as seen from the file's own folder. A bag that is missing is not refused:
    it is listed with those that failed."""
    try:
        lines = file.read_text(encoding="utf8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"list of bags '{file}' cannot be read: {error}") from None
    found: list[Path] = []
    for line in lines:
        word = os.path.join(file.parent, os.path.expanduser(line.strip()))
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if os.path.isfile(word) and Path(word).suffix in MANIFESTS:
            raise InputError(f"list of bags '{file}' names another list, '{line.strip()}'; name its bags")
        found += _expand(word) if os.path.isdir(word) or glob.has_magic(word) else [Path(word)]
    if not found:
        raise InputError(f"list of bags '{file}' is empty; write one path per line")
    return found
