"""Many bags on one worker and on two: throughput, core-hours and bytes for an hour of two cameras."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lla_fusion_ros.bags.reader import Bag
from lla_fusion_ros.bags.writer import BagWriter
from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.fleet.folder import Fleet
from lla_fusion_ros.fleet.plan import Plan, plan_document, plan_hash
from lla_fusion_ros.fleet.run import dask_client, run_fleet
from lla_fusion_ros.lab.makebag.write import drive_frames, make_bag
from lla_fusion_ros.replay.output_folder import Wanted
from lla_fusion_ros.replay.replay import ReplayOptions
from lla_fusion_ros.signworld import CLASS_NAMES, Drive, DriveSettings
from lla_fusion_ros.stream.stream_settings import StreamSettings

SECONDS = 2.0  # of a bag


def measure_fleet(bundle: Bundle, bags: int) -> Iterator[dict[str, Any]]:
    """A record for each number of workers; the same bags, results in folders of their own."""
    with tempfile.TemporaryDirectory(prefix="lla_fleet_") as place:
        folder = Path(place)
        paths = write_bags(folder / "bags", bags)
        options = ReplayOptions(stream=StreamSettings(identity="global"), device="cpu")
        about = plan_document(bundle, options, Wanted(), False)
        alone = 0.0
        for workers in (1, 2):
            out = folder / f"fleet{workers}"
            source = Path(bundle.source).absolute()
            plan = Plan(out, source, bundle.hash, options, Wanted(), plan_hash(about))
            with Fleet(plan, about, False) as fleet, dask_client(workers) as client:
                run = run_fleet(client, plan, fleet, paths, lambda *_: None)
            alone = alone or run.seconds
            hours = run.recorded / 3600
            yield {
                "workers": workers,
                "bags": len(run.fused),
                "seconds": run.seconds,
                "speedup": alone / run.seconds,
                "core_s/bag": run.cpu / bags,
                "core_h/h": run.cpu / run.recorded,
                "memory_MB": run.memory / 1e6,
                **{f"{kind}_MB/h": size / 1e6 / hours for kind, size in sizes(out).items()},
            }


def write_bags(folder: Path, count: int) -> list[Path]:
    """Pieces of one rendered drive of two cameras at 10 Hz, each beginning a little later."""
    folder.mkdir()
    drive = Drive(DriveSettings(duration=3 * SECONDS, rate=10.0))
    make_bag(drive_frames(drive), folder / "whole", "signworld", CLASS_NAMES, encoding="jpeg")
    with Bag(folder / "whole") as whole:
        messages = list(whole.messages())
        start = whole.summary.start
    paths = []
    for number in range(count):
        begin = start + int(2 * SECONDS * 1e9) * number // count
        paths.append(folder / f"bag{number:04d}")
        with BagWriter(paths[-1]) as writer:
            for message in messages:
                if begin <= message.time < begin + int(SECONDS * 1e9):
                    writer.add(message.topic, message.type)
                    writer.write(message.topic, message.time + number, message.data)
    return paths


def sizes(fleet: Path) -> Counter[str]:
    """Bytes by kind of file."""
    kinds = {
        ".parquet": "parquet",
        ".csv": "csv",
        ".html": "report",
        ".mcap": "fused_bag",
        ".jpg": "pictures",
    }
    found: Counter[str] = Counter()
    for file in fleet.glob("bags/**/*"):
        if file.suffix in kinds:
            found[kinds[file.suffix]] += file.stat().st_size
    return found
