"""Write an mcap bag that stock ROS 2 tools open, also when the writing is interrupted."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import TracebackType
from typing import Final

from rosbags.interfaces import (
    Connection,
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.rosbag2.errors import WriterError

from lla_fusion_ros.bags.definitions import typestore
from lla_fusion_ros.errors import BagError

# Version 9 (Jazzy) writes QoS in a form that Humble cannot read; version 8 is read by both.
_METADATA_VERSION: Final = 8
_FOREVER = QosTime(2147483647, 4294967295)
MARK = "written_by"


class BagWriter:
    """A bag folder being written; in a `with` statement it is closed properly even after an error or Ctrl-C.

    `about` goes into metadata.yaml, so that a bag tells which bundle and settings made it.
    """

    def __init__(
        self, path: Path | str, about: dict[str, str] | None = None, overwrite: bool = False
    ) -> None:
        self.path = Path(path)
        if self.path.exists():
            if not overwrite:
                raise BagError(f"'{self.path}' exists already: give another place or --overwrite")
            check_removable(self.path)
            shutil.rmtree(self.path)
        self._connections: dict[str, Connection] = {}
        self._writer = Writer(self.path, version=_METADATA_VERSION, storage_plugin=StoragePlugin.MCAP)
        for key, value in {MARK: "lla_fusion_ros", **(about or {})}.items():
            self._writer.set_custom_data(key, value)

    def __enter__(self) -> BagWriter:
        try:
            self._writer.open()
        except (WriterError, OSError) as error:
            raise self._cannot(error) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._writer.close()
        except OSError as failed:
            raise self._cannot(failed) from failed

    def add(self, topic: str, type_name: str, latched: bool = False) -> None:
        """Announce a topic; one that nothing is written to still shows up in the bag."""
        if topic not in self._connections:
            self._connections[topic] = self._writer.add_connection(
                topic, type_name, typestore=typestore(), offered_qos_profiles=[_qos(latched)]
            )

    def write(self, topic: str, time: int, data: bytes | bytearray | memoryview) -> None:
        """Append one CDR message to an announced topic."""
        try:
            self._writer.write(self._connections[topic], time, bytes(data))
        except OSError as error:
            raise self._cannot(error) from error

    def _cannot(self, error: Exception) -> BagError:
        return BagError(f"bag '{self.path}' cannot be written: {error}")


def check_removable(path: Path) -> None:
    """Refuse to remove for a new bag what is not a bag."""
    if not path.exists():
        return
    if not path.is_dir() or (not (path / "metadata.yaml").exists() and any(path.iterdir())):
        raise BagError(f"'{path}' is not a bag, so it is not overwritten")


def _qos(latched: bool) -> Qos:
    return Qos(
        QosHistory.KEEP_LAST,
        1 if latched else 10,
        QosReliability.RELIABLE,
        QosDurability.TRANSIENT_LOCAL if latched else QosDurability.VOLATILE,
        _FOREVER,
        _FOREVER,
        QosLiveliness.AUTOMATIC,
        _FOREVER,
        False,
    )
