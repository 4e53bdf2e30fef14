"""What a node's log says about its cameras, each thing once: how they are connected, and what is wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

REPORTS_TO_TELL = 3  # of boxes without their images, one after the other, before the log tells
_NUMBERS_AND_NAMES = re.compile(r"[\d.]+|'[^']*'")  # which change while a trouble stays the same


class NodeLog:
    """Args:
    logger: the node's.
    """

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._told: set[str] = set()
        self._connections: dict[str, str] = {}  # by camera
        self._unpaired: Counter[str] = Counter()  # by camera: reports in a row

    def warn_once(self, key: str, message: str) -> None:
        if key not in self._told:
            self._told.add(key)
            self._logger.warning(message)

    def connected(self, camera: str, how: str) -> None:
        """One line at the first frame of a camera, and one where it is decided otherwise later."""
        if how and self._connections.get(camera) != how:
            begins = "from now on" if camera in self._connections else "first frame"
            self._connections[camera] = how
            self._logger.info(f"camera {camera}, {begins}: {how}")

    def report(self, troubles: Mapping[str, str], unpaired: Mapping[str, str]) -> None:
        """By camera: what is wrong, and why boxes found no image since the report before."""
        for camera, trouble in troubles.items():
            kind = _NUMBERS_AND_NAMES.sub("", trouble)
            self.warn_once(f"{camera}: {kind}", f"camera {camera}: {trouble}")
        for camera, problem in unpaired.items():
            self._unpaired[camera] = self._unpaired[camera] + 1 if problem else 0
            if self._unpaired[camera] == REPORTS_TO_TELL:
                self.warn_once(f"{camera} unpaired", f"camera {camera}: {problem}")
