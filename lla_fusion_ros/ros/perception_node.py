"""The executable `perception`; what it does is in `perception.py`."""

from __future__ import annotations

from lla_fusion_ros.ros.start import start


def main(args: list[str] | None = None) -> None:
    start("lla_fusion_ros.ros.perception", "PerceptionNode", args)


if __name__ == "__main__":
    main()
