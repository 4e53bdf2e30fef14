"""The folder of a fleet: what is in it, who may write to it, and the results that are there already.

fleet.json      the model and the settings that all results come from
bags/NAME/      results of one bag; they appear whole
bags.parquet, summary.json, summary.html     over all bags
run.json        times and failures of the last run, and whose results are of an earlier one
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from lla_fusion_ros.fleet.find import FLEET_FILE
from lla_fusion_ros.fleet.plan import BAGS_FOLDER, FORMAT, PARTS_FOLDER, RECORD, Look, Plan
from lla_fusion_ros.replay.sinks import writing
from lla_fusion_ros.types.errors import InputError

LOCK = ".lock"
CHANGED, NOT_LOOKED_AT = "the bag has changed", "not looked at in the last run"
Record = dict[str, Any]
Kept = dict[str, str]  # path and why


def read_record(folder: Path) -> Record | None:
    """The record of a folder of results; None where there is none that can be used."""
    return _read(folder / RECORD)


def read_records(fleet: Path) -> list[Record]:
    """Of all bags, in order of their names."""
    folders = sorted((fleet / BAGS_FOLDER).iterdir()) if (fleet / BAGS_FOLDER).is_dir() else []
    return [record for record in map(read_record, folders) if record is not None]


def read_fleet_file(fleet: Path) -> Record:
    """What all results of a fleet come from; a folder that is no fleet is refused."""
    found = _read(fleet / FLEET_FILE)
    if found is None:
        raise InputError(f"'{fleet}' is no folder of `lla-fusion replay BAG…`: it has no usable {FLEET_FILE}")
    return found


def is_done(record: Record | None, plan: Plan, bag: Look) -> bool:
    """Whether a record is about this very bag, fused by this very plan."""
    wanted = (bag.digest, bag.truth, plan.run)
    return record is not None and (record["digest"], record["truth_digest"], record["run"]) == wanted


def write_atomically(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.part")
    with writing(path):
        try:
            part.write_text(text, encoding="utf8", errors="backslashreplace")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


class Fleet:
    """The folder while a run writes to it; a `with` statement keeps other runs out.

    Args:
        about: all that decides on results besides the bag; stands in fleet.json.
        overwrite: results of another plan may go, once `begin` has seen a bag that can be read.
    """

    def __init__(self, plan: Plan, about: Mapping[str, Any], overwrite: bool) -> None:
        self.folder = plan.out
        self._plan, self._about, self._overwrite = plan, about, overwrite
        self._records: dict[str, Record] = {}  # by digest

    def __enter__(self) -> Fleet:
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            strange = [name for name in os.listdir(self.folder) if name != LOCK]
            if strange and not (self.folder / FLEET_FILE).exists():
                raise InputError(f"'{self.folder}' has other files in it; give another place with --out")
            self._lock = (self.folder / LOCK).open("w")
            try:
                fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._lock.close()
                raise InputError(f"another run writes to '{self.folder}'; wait for it") from None
            try:
                self._open()
            except BaseException:
                self._lock.close()
                raise
        return self

    def _open(self) -> None:
        there = _read(self.folder / FLEET_FILE)
        self._other_plan = there is not None and there["run"] != self._plan.run
        if there is not None and self._other_plan and not self._overwrite:
            changed = "; ".join(list(_differences(there["plan"], self._about))[:3])
            raise InputError(
                f"'{self.folder}' has results of another plan ({changed}); give another place with "
                "--out, or --overwrite"
            )
        shutil.rmtree(self.folder / PARTS_FOLDER, ignore_errors=True)  # of a run that was killed
        if not self._other_plan:
            self._write_plan()
        self._records = {record["digest"]: record for record in read_records(self.folder)}

    def _write_plan(self) -> None:
        document = {"format": FORMAT, "run": self._plan.run, "plan": self._about}
        write_atomically(self.folder / FLEET_FILE, json.dumps(document, indent=1, default=str) + "\n")

    def begin(self, looks: Sequence[Look]) -> None:
        """Overwrite the results of another plan; refused where no bag can be read, for then none come."""
        if not self._other_plan:
            return
        if all(seen.error for seen in looks):
            raise InputError(f"no bag can be read, so nothing is overwritten: {looks[0].error}")
        with writing(self.folder):
            for old in self.folder.iterdir():
                if old.name != LOCK:
                    shutil.rmtree(old) if old.is_dir() else old.unlink()
        self._write_plan()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.folder / PARTS_FOLDER, ignore_errors=True)
        self._lock.close()

    def done(self, plan: Plan, bag: Look) -> str:
        """The name of its results, empty where there are none."""
        record = self._records.get(bag.digest)
        return str(record["name"]) if record is not None and is_done(record, plan, bag) else ""

    def settle(self, looks: Sequence[Look], failed: Mapping[str, str], stopped: str) -> dict[str, Kept]:
        """Which results are of an earlier run, by name, and why they stay.

        Only results of what a bag was before it changed go, and only where it was fused as it is now. A bag
        that was moved is from now on where it was found.
        """
        bags = {seen.digest: seen for seen in reversed(looks) if not seen.error}
        records = read_records(self.folder)
        done = {
            r["digest"] for r in records if r["digest"] in bags and is_done(r, self._plan, bags[r["digest"]])
        }
        renewed = {str(seen.path) for seen in looks if seen.digest in done}
        looked_at = {str(seen.path) for seen in looks}
        places = {(str(seen.path), seen.digest) for seen in looks}
        kept: dict[str, Kept] = {}
        for record in records:
            path, digest, name = record["path"], record["digest"], record["name"]
            if path in renewed and digest not in bags:
                shutil.rmtree(self.folder / BAGS_FOLDER / name, ignore_errors=True)
            elif digest not in done:
                why = failed.get(path) or (stopped or CHANGED if path in looked_at else NOT_LOOKED_AT)
                kept[name] = {"path": path, "why": why}
            elif (path, digest) not in places:
                record["path"] = str(bags[digest].path)
                write_atomically(
                    self.folder / BAGS_FOLDER / name / RECORD, json.dumps(record, indent=1) + "\n"
                )
        return kept


def _differences(old: Any, new: Any, name: str = "") -> Iterator[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from _differences(old.get(key), new.get(key), key)
    elif json.dumps(old, default=str) != json.dumps(new, default=str):
        yield f"{name} was {str(old)[:40]!r}, is {str(new)[:40]!r}"


def _read(path: Path) -> Record | None:
    try:
        document = json.loads(path.read_text(encoding="utf8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) and document.get("format") == FORMAT else None
