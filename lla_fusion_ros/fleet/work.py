"""What a worker does: look at a bag, fuse a bag. The model is loaded once and stays."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from lla_fusion_ros import __version__
from lla_fusion_ros.fleet.digest import bag_digest, file_digest
from lla_fusion_ros.fleet.find import bag_name
from lla_fusion_ros.fleet.folder import is_done, read_record
from lla_fusion_ros.fleet.plan import BAGS_FOLDER, FORMAT, PARTS_FOLDER, PICTURES, RECORD, Look, Plan
from lla_fusion_ros.types.errors import LlaFusionError

if TYPE_CHECKING:
    from lla_fusion_ros.bundle import Bundle
    from lla_fusion_ros.networks.classifier import Classifier
    from lla_fusion_ros.replay.output_folder import Outcome

TRUTH_ENDING = ".truth.json"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# A worker that a cluster gave several threads still fuses one bag at a time: more would share its core.
_one_at_a_time = Lock()


class DiskFullError(LlaFusionError):
    """There is no room for results: not a fault of the bag."""


def look(plan: Plan, path: Path) -> Look:
    """The bag's hash and size; nothing of it is decoded."""
    _check_version(plan)
    try:
        digest, size = bag_digest(path)
        return Look(path, digest, size, file_digest(_truth_of(plan, path)))
    except (LlaFusionError, OSError) as error:
        return Look(path, error=_reason(error))


def fuse(plan: Plan, bag: Look) -> dict[str, Any]:
    """Fuse one bag into its folder of results; its record, or why it cannot be fused as {"error": …}.

    What is not the bag's fault, such as a full disk or a network drive that is away, is raised.
    """
    _check_version(plan)
    with _one_at_a_time:
        began = time.process_time()
        folder = plan.out / BAGS_FOLDER / bag.name
        part = plan.out / PARTS_FOLDER / f"{bag.name}.{uuid.uuid4().hex[:8]}"
        try:
            with _removed(part), _room():
                record = _fuse_into(part, plan, bag, began)
                _put(part, folder, plan, bag)
            return record
        except DiskFullError:
            raise
        except LlaFusionError as error:
            return {"error": _reason(error)}


def _fuse_into(part: Path, plan: Plan, bag: Look, began: float) -> dict[str, Any]:
    from lla_fusion_ros.fleet import tables
    from lla_fusion_ros.fleet.objects import ObjectTable
    from lla_fusion_ros.networks.plugins import import_plugins
    from lla_fusion_ros.replay.output_folder import replay_to_folder
    from lla_fusion_ros.report.truth import read_truth

    import_plugins(plan.plugins)
    model = plan.bundle, plan.bundle_hash
    bundle = _bundle(*model)
    how = plan.options
    truth_file = _truth_of(plan, bag.path)
    truth = None if truth_file is None else read_truth(truth_file)
    part.mkdir(parents=True)
    least = plan.options.fusion.min_views
    objects = ObjectTable(bag.name, bundle.class_names, truth, least, len(bundle.reserved))
    with tables.FrameTable(part / tables.FRAMES, bag.name, bundle.class_names, truth) as frames:
        outcome = replay_to_folder(
            bag.path,
            bundle,
            part,
            plan.options,
            replace(plan.wanted, truth=truth_file),
            sinks=(frames, objects),
            networks=lambda: _networks(*model, how.device, how.precision, how.engine),
        )
    if outcome.result.interrupted:
        raise RuntimeError("interrupted")
    rows = objects.rows(objects.write_pictures(part / PICTURES))
    tables.write_table(part / tables.OBJECTS, tables.OBJECT_COLUMNS, rows)
    record = _record(plan, bag, outcome, rows)
    record["cost"] = {
        "seconds": outcome.result.seconds,
        "cpu": time.process_time() - began,  # of all threads; the first bag also loads the model
        "process": f"{socket.gethostname()}:{os.getpid()}",
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    if truth is not None:
        record["bins"] = objects.bins.tolist()
    (part / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf8")
    return record


def _record(plan: Plan, bag: Look, outcome: Outcome, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What the summary needs of a bag."""
    result = outcome.result
    return {
        "format": FORMAT,
        "name": bag.name,
        "path": str(bag.path),
        "digest": bag.digest,
        "truth_digest": bag.truth,
        "run": plan.run,
        "bytes": bag.size,
        "start": min((row["first"] for row in rows), default=0),
        "recorded": result.recorded,
        "frames": result.frames,
        "views": result.views,
        "used": result.used,
        "objects": len(rows),
        "classes": _count(row["fused_class"] for row in rows),
        "warned": sum(bool(row["reasons"]) for row in rows),
        "reasons": _count(reason for row in rows for reason in row["reasons"]),
        "cameras": {name: dict(sorted(counts.items())) for name, counts in result.by_camera.items()},
        "ids": {name: str(chosen) for name, chosen in result.chosen.items()},
        "notes": list(outcome.notes),
        "scores": None if outcome.scores is None else outcome.scores.as_dict(),
        "files": sorted(file.name for file in outcome.files),
    }


def _count(words: Iterator[str] | Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return dict(sorted(counts.items()))


@lru_cache(maxsize=1)
def _bundle(path: Path, digest: str) -> Bundle:
    from lla_fusion_ros.bundle import load_bundle

    bundle = load_bundle(path)
    if bundle.hash != digest:
        raise RuntimeError(f"'{path}' is another model here ({bundle.hash[:12]}, not {digest[:12]})")
    return bundle


@lru_cache(maxsize=1)
def _networks(path: Path, digest: str, device: str, precision: str, engine: str) -> Classifier:
    """Ready to run."""
    import cv2

    from lla_fusion_ros.replay.sources import load_networks

    cv2.setNumThreads(1)
    return load_networks(_bundle(path, digest), device, precision, engine)


def _put(part: Path, folder: Path, plan: Plan, bag: Look) -> None:
    """Results appear whole. Where another worker was quicker, its results stay."""
    folder.parent.mkdir(exist_ok=True)
    if is_done(read_record(folder), plan, bag):
        return
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)


@contextmanager
def _removed(part: Path) -> Iterator[None]:
    """Nothing half done stays behind, unless the process is killed; `run` then removes it."""
    try:
        yield
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def _room() -> Iterator[None]:
    """A full disk is told from what is wrong with a bag."""
    try:
        yield
    except (OSError, LlaFusionError) as error:
        cause: BaseException | None = error
        while cause is not None and not (isinstance(cause, OSError) and cause.errno in _FULL):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        raise DiskFullError(_reason(error)) from None


def _truth_of(plan: Plan, bag: Path) -> Path | None:
    file = None if plan.truths is None else plan.truths / f"{bag_name(bag)}{TRUTH_ENDING}"
    return file if file is not None and file.exists() else None


def _check_version(plan: Plan) -> None:
    if plan.version != __version__:
        raise RuntimeError(f"this worker has lla_fusion_ros {__version__}, the client {plan.version}")


def _reason(error: BaseException) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__)[:500]
