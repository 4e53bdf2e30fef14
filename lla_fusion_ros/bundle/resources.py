"""The model files that come with the package."""

from __future__ import annotations

from pathlib import Path

from lla_fusion_ros.types.errors import BundleError, unknown_name
from lla_fusion_ros.types.resources import share_folders

SCORES = "scores"  # the bundle without networks, which is no file
NO_NETWORKS = "bundle '{}' has no networks: it is for `replay` and for the parameter `model` of `perception`"


def find_model(name_or_path: str | Path) -> Path:
    """A bundle by its path, or by the name (with or without ending) of one that comes with the package."""
    path = Path(name_or_path).expanduser()
    if path.is_file() or path.parent != Path("."):
        return path
    if path.name == SCORES:
        raise BundleError(NO_NETWORKS.format(path))
    shipped = shipped_models()
    if path.stem not in shipped or path.suffix not in ("", ".safetensors"):
        unknown = unknown_name("shipped bundle", path.stem, (*shipped, SCORES))
        raise BundleError(f"file '{path}' does not exist, and {unknown}")
    return shipped[path.stem]


def shipped_models() -> dict[str, Path]:
    """The bundles that come with the package, by name."""
    places = list(share_folders())[::-1]  # the most specific last: of bundles with the same name it stays
    found = {model.stem: model for place in places for model in place.glob("models/*.safetensors")}
    return dict(sorted(found.items()))


def model_of(data_set: str) -> str | None:
    """Name of the bundle that comes with the package and was trained on this data set, if there is one."""
    from lla_fusion_ros.bundle.container import read_document

    for name, path in shipped_models().items():
        if read_document(path).get("dataset", {}).get("name") == data_set:
            return name
    return None
