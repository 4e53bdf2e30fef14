"""On what something was measured."""

from __future__ import annotations

import os
import platform
from typing import Any

from lla_fusion_ros.types.resources import find_resource


def machine() -> dict[str, Any]:
    """What a reader needs to judge the numbers."""
    import torch

    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def dds_profile() -> dict[str, str]:
    """Variables of processes that send more at once than Fast DDS holds by default."""
    names = "FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE"
    return dict.fromkeys(names, str(find_resource("config/fastdds.xml")))
