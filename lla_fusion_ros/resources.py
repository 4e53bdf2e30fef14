"""Where the files that belong to the package are: models, configuration, launch files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from lla_fusion_ros.errors import LlaFusionError

PACKAGE = "lla_fusion_ros"


def find_resource(relative: str | Path) -> Path:
    """Path of e.g. `models/signworld.safetensors`, wherever the package is installed.

    Raises LlaFusionError with all places that were tried.
    """
    places = list(_share_folders())
    for place in places:
        path = place / relative
        if path.exists():
            return path
    raise LlaFusionError(
        f"'{relative}' is not in {', '.join(map(str, places))}; is the package installed whole?"
    )


def find_model(name_or_path: str | Path) -> Path:
    """A bundle by its path, or by the name (with or without ending) of one that comes with the package."""
    path = Path(name_or_path).expanduser()
    if path.exists() or path.parent != Path("."):
        return path
    shipped = shipped_models()
    if path.stem not in shipped or path.suffix not in ("", ".safetensors"):
        raise LlaFusionError(
            f"bundle '{path}' does not exist, and none of this name comes with the package "
            f"({', '.join(shipped) or 'none does'})"
        )
    return shipped[path.stem]


def shipped_models() -> dict[str, Path]:
    """The bundles that come with the package, by name."""
    places = list(_share_folders())[::-1]  # the most specific last: of bundles with the same name it stays
    found = {model.stem: model for place in places for model in place.glob("models/*.safetensors")}
    return dict(sorted(found.items()))


def _share_folders() -> Iterator[Path]:
    """Folders that may hold the package's share files, the most specific first."""
    source = Path(__file__).resolve().parent.parent
    if (source / "package.xml").is_file():  # run from the source tree, or an editable install of it
        yield source
    # What `ament_index_python` does, without needing ROS: a sourced workspace is in this variable.
    prefixes = [
        Path(prefix) for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if prefix
    ]
    for prefix in [*prefixes, Path(sys.prefix)]:
        yield prefix / "share" / PACKAGE


def model_of(data_set: str) -> str | None:
    """Name of the bundle that comes with the package and was trained on this data set, if there is one."""
    from lla_fusion_ros.bundle.container import read_document

    for name, path in shipped_models().items():
        if read_document(path).get("dataset", {}).get("name") == data_set:
            return name
    return None
