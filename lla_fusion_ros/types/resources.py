"""Where the files that belong to the package are: models, configuration, launch files.

Python's own modules only: `ros2 launch` reads it with ROS's Python, which may have no numpy.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from lla_fusion_ros.types.errors import LlaFusionError

PACKAGE = "lla_fusion_ros"


def find_resource(relative: str | Path) -> Path:
    """Path of e.g. `models/signworld.safetensors`, wherever the package is installed.

    Raises LlaFusionError with all places that were tried.
    """
    places = list(share_folders())
    for place in places:
        path = place / relative
        if path.exists():
            return path
    raise LlaFusionError(
        f"'{relative}' is not in {', '.join(map(str, places))}; is the package installed whole?"
    )


def share_folders() -> Iterator[Path]:
    """Folders that may hold the package's share files, the most specific first."""
    source = Path(__file__).resolve().parents[2]
    if (source / "package.xml").is_file():  # run from the source tree, or an editable install of it
        yield source
    # What `ament_index_python` does, without needing ROS: a sourced workspace is in this variable.
    prefixes = [
        Path(prefix) for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if prefix
    ]
    for prefix in [*prefixes, Path(sys.prefix)]:
        yield prefix / "share" / PACKAGE
