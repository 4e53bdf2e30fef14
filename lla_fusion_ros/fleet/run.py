"""The client's side: which bags are left to do, and Dask's workers that do them."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask
from distributed import Client, Future, KilledWorker, LocalCluster, as_completed

from lla_fusion_ros.fleet.folder import Fleet, Kept
from lla_fusion_ros.fleet.plan import Look, Plan
from lla_fusion_ros.fleet.work import DiskFullError, fuse, look
from lla_fusion_ros.types.errors import InputError, LlaFusionError

_RETRIES = 1  # of a bag that failed for a reason outside it, such as a network drive that was away
_CONNECT = 10.0  # seconds
_CTRL_C_IS_THE_CLIENTS = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
Progress = Callable[[str, int, int, int], None]  # what, done, of, failed


@dataclass(slots=True)
class Run:
    """What happened to every bag of one run.

    Attributes:
        fused, skipped: names of the results that were made now, and of those that were there already.
        duplicates: bags with the same content as another, and that one.
        failed: bags that could not be read or fused, and why.
        kept: names of the results that are of an earlier run, and why they stay.
        seconds: wall time; cpu: of all workers; recorded: of the bags fused now.
        processes: those that fused, each of which loaded the model once.
        memory: most bytes that one of them held.
        stopped: why not all were tried; empty where they were.
    """

    fused: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    duplicates: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    kept: dict[str, Kept] = field(default_factory=dict)
    seconds: float = 0.0
    cpu: float = 0.0
    recorded: float = 0.0
    processes: int = 0
    memory: int = 0
    stopped: str = ""
    interrupted: bool = False


@contextmanager
def dask_client(workers: int, address: str = "") -> Iterator[Client]:
    """A client of the scheduler at `address`, or of processes on this machine, each with one thread."""
    if address:
        try:
            client = Client(address, timeout=_CONNECT)
        except (OSError, ValueError) as error:
            raise InputError(f"no Dask scheduler answers at '{address}': {error}") from None
        with client:
            if not client.scheduler_info()["workers"]:
                raise InputError(f"the Dask scheduler at '{address}' has no workers; start some")
            yield client
        return
    # one bag at a time for each worker: where a bag kills its worker, no other bag is blamed for it
    with (
        dask.config.set({"distributed.scheduler.worker-saturation": 1.0}),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            preload=[_CTRL_C_IS_THE_CLIENTS],
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def run_fleet(client: Client, plan: Plan, fleet: Fleet, bags: Sequence[Path], tell: Progress) -> Run:
    """Fuse what is not done yet; Ctrl-C, a full disk and bags that cannot be read keep what is."""
    run = Run()
    began = time.monotonic()
    looks: list[Look] = []
    try:
        looks = _look(client, plan, bags, tell)
        fleet.begin(looks)
        _fuse_all(client, plan, _todo(plan, fleet, looks, run), run, tell)
    except KeyboardInterrupt:
        run.interrupted, run.stopped = True, "interrupted"
    run.kept = fleet.settle(looks, run.failed, run.stopped)
    run.seconds = time.monotonic() - began
    return run


def _look(client: Client, plan: Plan, bags: Sequence[Path], tell: Progress) -> list[Look]:
    futures = client.map(look, [plan] * len(bags), list(bags), pure=False)
    for done, _ in enumerate(as_completed(futures), start=1):
        tell("looking at bags", done, len(bags), 0)
    return list(client.gather(futures))


def _todo(plan: Plan, fleet: Fleet, looks: Sequence[Look], run: Run) -> list[Look]:
    """Bags without results, the largest first: so no long one is left alone at the end."""
    todo: dict[str, Look] = {}
    first: dict[str, Path] = {}
    for seen in looks:
        if seen.error:
            run.failed[str(seen.path)] = seen.error
        elif seen.digest in first:
            run.duplicates[str(seen.path)] = str(first[seen.digest])
        else:
            first[seen.digest] = seen.path
            if done_name := fleet.done(plan, seen):
                run.skipped.append(done_name)
            else:
                todo[seen.digest] = seen
    return sorted(todo.values(), key=lambda bag: (-bag.size, bag.path))


def _fuse_all(client: Client, plan: Plan, todo: Sequence[Look], run: Run, tell: Progress) -> None:
    futures: dict[Future, Look] = {
        client.submit(fuse, plan, bag, pure=False, retries=_RETRIES, priority=-rank): bag
        for rank, bag in enumerate(todo)
    }
    processes: set[str] = set()
    tell("fusing bags", 0, len(todo), len(run.failed))
    try:
        for done, future in enumerate(as_completed(futures), start=1):
            bag = futures[future]
            record = _result(future)
            if reason := record.get("error"):
                run.failed[str(bag.path)] = reason
            else:
                run.fused.append(record["name"])
                run.recorded += record["recorded"]
                cost = record["cost"]
                processes.add(cost["process"])
                run.cpu += cost["cpu"]
                run.memory = max(run.memory, cost["memory"])
            tell("fusing bags", done, len(todo), len(run.failed))
            future.release()
    except DiskFullError as error:
        run.stopped = f"the disk is full: {error}"
    finally:
        client.cancel(list(futures))
        run.processes = len(processes)


def _result(future: Future) -> dict[str, Any]:
    """The record of a bag, or why there is none; only what concerns all bags is raised."""
    try:
        record: dict[str, Any] = future.result()
        return record
    except DiskFullError:
        raise
    except KilledWorker:
        return {"error": "every worker that tried it died; perhaps it needs more memory than they have"}
    except Exception as error:
        if future.cancelled():
            raise LlaFusionError("the Dask scheduler is gone; run the same command again to go on") from None
        return {"error": f"{type(error).__name__}: {error}"[:500]}


def default_workers() -> int:
    return len(os.sched_getaffinity(0))
