"""The executable `class_fusion`; what it does is in `class_fusion.py`."""

from __future__ import annotations

from lla_fusion_ros.ros.start import start


def main(args: list[str] | None = None) -> None:
    start("lla_fusion_ros.ros.class_fusion", "ClassFusionNode", args)


if __name__ == "__main__":
    main()
