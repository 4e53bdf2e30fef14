"""Where the installed message definitions are."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def description_file(message: str) -> Path:
    """The installed type description of a vision_msgs message, of the wheels' prefix or of a sourced ROS."""
    for prefix in [*filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)), sys.prefix]:
        path = Path(prefix) / "share" / "vision_msgs" / "msg" / f"{message}.json"
        if path.is_file():
            return path
    raise AssertionError(f"vision_msgs/{message} is not installed; run `make setup`")
