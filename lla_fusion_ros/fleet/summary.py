"""One answer over all bags of a fleet: counts, rates, the oddest objects, cameras with losses.

It is made of the records and tables in the folder alone, and of nothing that depends on the machine or on
how often the run was interrupted: equal results give equal bytes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lla_fusion_ros.fleet import tables
from lla_fusion_ros.fleet.folder import Kept, Record, read_fleet_file, read_records, write_atomically
from lla_fusion_ros.fleet.object_scores import METRICS, contributions, ece_of_bins, ratio
from lla_fusion_ros.fleet.page import summary_html
from lla_fusion_ros.fleet.plan import BAGS_FOLDER
from lla_fusion_ros.types.printable import escaped

MOST_ODD = 24
_SECONDS = 3600.0


def summarise(
    fleet: Path, failed: Mapping[str, str], duplicates: Mapping[str, str], kept: Mapping[str, Kept]
) -> dict[str, Any]:
    """Ready for JSON; failures, duplicates and what is kept are those of the last run."""
    records = read_records(fleet)
    hours = sum(record["recorded"] for record in records) / _SECONDS
    reasons = _sum(record["reasons"] for record in records)
    return {
        "plan": read_fleet_file(fleet)["plan"],
        "bags": len(records),
        "bytes": sum(record["bytes"] for record in records),
        "hours": hours,
        **{key: sum(record[key] for record in records) for key in ("frames", "views", "objects", "warned")},
        "classes": _sum(record["classes"] for record in records),
        "warnings": {
            reason: {"objects": count, "per_hour": _rate(count, hours)} for reason, count in reasons.items()
        },
        "objects_per_hour": _rate(sum(record["objects"] for record in records), hours),
        "cameras": _cameras(records),
        "scores": _scores(fleet, records),
        "odd": _odd(fleet),
        "notes": {record["name"]: record["notes"] for record in records if record["notes"]},
        "failed": dict(sorted(failed.items())),
        "kept": dict(sorted(kept.items())),
        "duplicates": dict(sorted(duplicates.items())),
    }


def write_summary(
    fleet: Path, failed: Mapping[str, str], duplicates: Mapping[str, str], kept: Mapping[str, Kept]
) -> dict[str, Any]:
    """bags.parquet, summary.json and summary.html."""
    write_bags(fleet, kept)
    summary = summarise(fleet, failed, duplicates, kept)
    write_atomically(fleet / "summary.json", json.dumps(summary, indent=1) + "\n")
    write_atomically(fleet / "summary.html", summary_html(fleet, summary))
    return summary


def write_bags(fleet: Path, kept: Mapping[str, Kept]) -> None:
    """The table of one row per bag; its results are `current`, or of an earlier run."""
    rows = [
        {
            **{key: record[key] for key in tables.BAG_COLUMNS.names if key in record},
            "bag": record["name"],
            "path": escaped(record["path"]),
            "cameras": list(map(escaped, record["cameras"])),
            "notes": list(map(escaped, record["notes"])),
            "state": escaped(f"kept: {kept[record['name']]['why']}") if record["name"] in kept else "current",
            "dropped": sum(_dropped(counts).total() for counts in record["cameras"].values()),
        }
        for record in read_records(fleet)
    ]
    part = fleet / f".{tables.BAGS}.part"
    tables.write_table(part, tables.BAG_COLUMNS, rows)
    part.replace(fleet / tables.BAGS)


def _cameras(records: Sequence[Record]) -> dict[str, Any]:
    """By camera: in how many bags it is, frames and crops fused, and what was lost for which reason."""
    names = sorted({name for record in records for name in record["cameras"]})
    found = {}
    for name in names:
        own = [record["cameras"][name] for record in records if name in record["cameras"]]
        counts = Counter(_sum(own))
        losses = _dropped(counts)
        found[name] = {
            "bags": len(own),
            "frames": counts["frames"],
            "crops": counts["crops"],
            "dropped": losses.total(),
            "losses": {reason.removeprefix("dropped_"): count for reason, count in sorted(losses.items())},
        }
    return found


def _dropped(counts: Mapping[str, int]) -> Counter[str]:
    return Counter({name: count for name, count in counts.items() if name.startswith("dropped_") and count})


def _scores(fleet: Path, records: Sequence[Record]) -> dict[str, Any] | None:
    """Against the truth, over all objects of all bags that have one."""
    scored = [record for record in records if "bins" in record]
    if not scored:
        return None
    sums = np.zeros((len(METRICS), 2))
    for record in scored:
        sums += contributions(tables.read(fleet / BAGS_FOLDER / record["name"] / tables.OBJECTS)).sum(axis=0)
    found = {name: ratio(*pair) for name, pair in zip(METRICS, sums.tolist(), strict=True)}
    ece = ece_of_bins(np.sum([record["bins"] for record in scored], axis=0))
    return {"bags": len(scored), **found, "ece": ece}


def _odd(fleet: Path) -> list[dict[str, Any]]:
    """The oddest objects of all bags, with the places of their pictures in the fleet's folder."""
    columns = ["bag", "object", "cameras", "first", "last", "views", "fused_class", "fused_p", "reasons",
               "oddness", "picture", "truth", "outside"]  # fmt: skip
    best: list[dict[str, Any]] = []
    for file in sorted(fleet.glob(f"bags/*/{tables.OBJECTS}")):
        rows = tables.read(file, columns).to_pylist()
        best = sorted([*best, *rows], key=lambda row: (-row["oddness"], row["bag"], row["object"]))[:MOST_ODD]
    return best


def _sum(counts: Any) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


def _rate(count: int, hours: float) -> float:
    return count / hours if hours else 0.0
