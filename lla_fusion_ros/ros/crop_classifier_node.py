"""The executable `crop_classifier`; what it does is in `crop_classifier.py`."""

from __future__ import annotations

from lla_fusion_ros.ros.start import start


def main(args: list[str] | None = None) -> None:
    start("lla_fusion_ros.ros.crop_classifier", "CropClassifierNode", args)


if __name__ == "__main__":
    main()
