"""The one thread that runs networks and fusion, so that receiving never waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Worker:
    """Calls `work` until it returns False, whenever it has been woken.

    Args:
        work: does one batch; False where nothing waits.
        on_error: told of an exception that `work` let through; the thread goes on with the next batch.
    """

    def __init__(self, work: Callable[[], bool], on_error: Callable[[Exception], None]) -> None:
        self._work = work
        self._on_error = on_error
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="perception worker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Something waits to be done."""
        self._wake.set()

    def stop(self, timeout: float = 1.5) -> None:
        """Finish the batch under way and end; a batch that takes longer than `timeout` is left behind."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        while not self._stopping:
            self._wake.wait()
            self._wake.clear()
            while not self._stopping and self._work_once():
                pass

    def _work_once(self) -> bool:
        try:
            return self._work()
        except Exception as error:  # a fault in one frame must not end perception
            self._on_error(error)
            return True
