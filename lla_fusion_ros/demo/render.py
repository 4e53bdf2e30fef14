"""Render a drive on all cores; frames come in the order of their stamps."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Generator

from lla_fusion_ros.signworld import CameraFrame, Drive

_drive: Drive | None = None  # in each worker process


def render(drive: Drive, workers: int = 0) -> Generator[CameraFrame, None, None]:
    """All frames of the drive; `workers` 0 takes a process per core."""
    count = workers or min(os.cpu_count() or 1, 8)
    if count == 1:
        yield from drive
        return
    context = multiprocessing.get_context("fork")
    with context.Pool(count, _start, (drive,)) as pool:
        yield from pool.imap(_frame, drive.schedule(), chunksize=4)


def _start(drive: Drive) -> None:
    global _drive
    _drive = drive
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who asked for the frames
    # A handler that the parent had (rclpy's) would swallow the signal by which the pool ends its workers.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _frame(place: tuple[int, int]) -> CameraFrame:
    assert _drive is not None
    return _drive.frame(*place)
