"""One target under atheris: `python atheris_run.py TARGET FINDS CORPUS [option …]` (see __main__.py)."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import atheris

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "test")]

# the parsers, not the numerics behind them: what is instrumented runs several times slower
PARSERS = [
    "lla_fusion_ros.messages",
    "lla_fusion_ros.bundle",
    "lla_fusion_ros.bags",
    "lla_fusion_ros.images.crops",
    "lla_fusion_ros.images.file_checks",
    "lla_fusion_ros.lab.datasets",
    "lla_fusion_ros.report.truth",
    "lla_fusion_ros.types.settings",
    "lla_fusion_ros.warnings.model",
    "rosbags.rosbag2",
    "yaml",
]
with atheris.instrument_imports(include=PARSERS):
    from fuzz.targets import TARGETS


def main() -> None:
    target, finds = TARGETS[sys.argv.pop(1)], Path(sys.argv.pop(1))
    for number, data in enumerate(target.seeds()):
        Path(sys.argv[1], f"seed{number}").write_bytes(data)

    def run(data: bytes) -> None:
        try:
            target(data)
        except Exception:  # libFuzzer keeps what hangs or fills the memory, but not what raises
            finds.joinpath(f"raised-{hashlib.sha256(data).hexdigest()[:16]}").write_bytes(data)
            raise

    atheris.Setup(sys.argv, run)
    atheris.Fuzz()


main()
