"""On what, and with what settings, something was measured."""

from __future__ import annotations

import os
import platform
from typing import Any


def machine(threads: int) -> dict[str, Any]:
    """Everything that a reader needs to judge the numbers."""
    import cv2
    import numpy as np
    import torch

    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "torch_threads": threads,
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "unset"),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "opencv": cv2.__version__,
        "clock": "CPU time of the process, unless a field says otherwise",
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
