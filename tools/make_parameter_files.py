"""Writes docs/parameters.md and config/*.yaml from the settings classes. Run it after changing a setting."""

from __future__ import annotations

from pathlib import Path

from lla_fusion_ros.ros.manual import CONFIGS, config_file, parameters_page

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    (ROOT / "docs/parameters.md").write_text(parameters_page())
    for name in CONFIGS:
        (ROOT / "config" / name).write_text(config_file(name))


if __name__ == "__main__":
    main()
