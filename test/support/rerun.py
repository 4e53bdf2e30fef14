"""Recordings of Rerun, read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rerun.chunk import RrdReader


class Recording:
    """All rows of a recording, by entity."""

    def __init__(self, path: Path) -> None:
        reader = RrdReader(path)
        self.blueprints = len(reader.blueprints())
        self._batches: dict[str, list[Any]] = {}
        for chunk in reader.stream():
            self._batches.setdefault(chunk.entity_path, []).append(chunk.to_record_batch())

    @property
    def paths(self) -> list[str]:
        return sorted(self._batches)

    def column(self, path: str, name: str) -> list[Any]:
        """The values of a component, in the order of time."""
        rows = []
        for batch in self._batches[path]:
            if name in batch.schema.names:
                values = batch.column(batch.schema.names.index(name)).to_pylist()
                rows += zip(self._stamps(batch), values, strict=True)
        return [value for _, value in sorted(rows, key=lambda row: row[0]) if value is not None]

    def times(self, path: str) -> list[int]:
        """Stamps in nanoseconds."""
        return sorted(stamp for batch in self._batches[path] for stamp in self._stamps(batch) if stamp >= 0)

    @staticmethod
    def _stamps(batch: Any) -> list[int]:
        if "stamp" not in batch.schema.names:
            return [-1] * batch.num_rows
        return batch.column(batch.schema.names.index("stamp")).cast("int64").to_pylist()
