"""Run an iterator in a thread of its own, a bounded number of items ahead of who uses them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TypeVar

Item = TypeVar("Item")
_POLL = 0.1  # seconds; only passes when one side is stuck or gone


class _End:
    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def ahead(items: Iterable[Item], depth: int) -> Iterator[Item]:
    """The same items in the same order; an error of the thread is raised here, and it ends with its user."""
    line: Queue[Item | _End] = Queue(depth)
    stop = Event()

    def put(item: Item | _End) -> None:
        while not stop.is_set():
            try:
                line.put(item, timeout=_POLL)
                return
            except Full:
                continue

    def work() -> None:
        try:
            for item in items:
                put(item)
                if stop.is_set():
                    return
        except BaseException as error:  # noqa: BLE001 - whatever it is, the user of the items must see it
            put(_End(error))
        else:
            put(_End())

    thread = Thread(target=work, name="replay source", daemon=True)
    thread.start()
    try:
        while True:
            try:
                item = line.get(timeout=_POLL)
            except Empty:
                continue
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item
    finally:
        stop.set()
        thread.join(timeout=5.0)
