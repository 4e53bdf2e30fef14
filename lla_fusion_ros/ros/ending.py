"""The end of a process: everything is freed in order, and nothing may wait for ever."""

from __future__ import annotations

import faulthandler
import os
import sys
import time
import traceback
from collections.abc import Callable
from threading import Event, Thread
from typing import NoReturn

import rclpy

PATIENCE = 3.0  # seconds from the signal, or from the first step of freeing
_GRACE = 0.5
_LOOK_EVERY = 0.2


class Ending:
    """Watches from now on: once ROS is shut down, the process has `PATIENCE` seconds to end.

    Fast DDS may hang while it frees a participant, and rclpy holds Python's lock meanwhile: no thread of
    Python can run then. `faulthandler` has a thread that needs no lock; it prints where everything stands.
    """

    def __init__(self) -> None:
        self._context = rclpy.get_default_context()
        self._doing = "the work under way"
        self._began = Event()
        Thread(target=self._watch, name="watch over the end", daemon=True).start()

    def finish(self, code: int, *steps: tuple[str, Callable[[], object]]) -> NoReturn:
        """Free everything, each step with the name of what it frees, and end the process.

        It ends without the interpreter's own clearing up, which would wait for threads of libraries.
        """
        self._began.set()
        self._limit()
        for self._doing, free in (*steps, ("ROS", rclpy.try_shutdown)):
            try:
                free()
            except Exception:
                print(f"{self._doing} could not be freed:\n{traceback.format_exc()}", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def _watch(self) -> None:
        while self._context.ok() and not self._began.wait(_LOOK_EVERY):
            pass
        if not self._began.is_set():
            self._limit()
        time.sleep(PATIENCE)
        os.write(2, f"not freed within {PATIENCE:g} s: {self._doing}; the process ends by force\n".encode())
        os._exit(1)

    def _limit(self) -> None:
        faulthandler.dump_traceback_later(PATIENCE + _GRACE, exit=True, file=2)
