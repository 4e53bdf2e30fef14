"""`python -m lla_fusion_ros.ros NAME ...` runs an executable from a checkout that is not installed."""

from __future__ import annotations

import sys

from lla_fusion_ros.ros import executables

NAMES = ("perception", "crop_classifier", "class_fusion", "bag_player", "recorder")

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        sys.exit(f"usage: python -m lla_fusion_ros.ros {{{','.join(NAMES)}}} [arguments]")
    sys.argv[:2] = [sys.argv[1]]
    sys.exit(getattr(executables, sys.argv[0])())
