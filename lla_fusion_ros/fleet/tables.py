"""The Parquet tables: their columns, and the sink that writes one row per object and frame.

Every row names its bag, so that the tables of many bags are read as one: `bags/*/objects.parquet`. What
is about the truth is null where none was given, or where it does not tell.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lla_fusion_ros.replay.sinks import writing
from lla_fusion_ros.report.tracks import reasons_of
from lla_fusion_ros.report.truth import UNSAID, Truth
from lla_fusion_ros.stream.frame_messages import view_pmf
from lla_fusion_ros.stream.frames import FusedFrame, ViewFrame
from lla_fusion_ros.types.errors import BagError
from lla_fusion_ros.types.printable import escaped
from lla_fusion_ros.warnings.result import P_VALUE_NAMES

FRAMES, OBJECTS, BAGS = "frames.parquet", "objects.parquet", "bags.parquet"
_ROWS = 20_000  # of a row group; bounds what waits in memory
_NAME = pa.dictionary(pa.int32(), pa.string())
_STAMP = pa.timestamp("ns")


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema(list(columns.items()))


FRAME_COLUMNS = _schema(
    bag=_NAME, stamp=_STAMP, camera=_NAME, object=_NAME, track=_NAME,
    view_class=_NAME, view_p=pa.float32(), fused_class=_NAME, fused_p=pa.float32(), entropy=pa.float32(),
    ood_score=pa.float32(), **dict.fromkeys(P_VALUE_NAMES, pa.float32()), views=pa.int32(),
    level=pa.int8(), reasons=pa.list_(pa.string()),
    x=pa.float32(), y=pa.float32(), width=pa.float32(), height=pa.float32(),
    truth=_NAME, outside=pa.bool_(), truth_p=pa.float32(), view_truth_p=pa.float32(),
)  # fmt: skip
OBJECT_COLUMNS = _schema(
    bag=_NAME, object=pa.string(), cameras=pa.list_(pa.string()), first=_STAMP, last=_STAMP,
    views=pa.int32(), fused_class=_NAME, fused_p=pa.float32(), entropy=pa.float32(),
    pmf=pa.list_(pa.float32()), changes=pa.int32(), last_change=pa.int32(), view_changes=pa.int32(),
    warned_views=pa.int32(),
    reasons=pa.list_(pa.string()), ood_score=pa.float32(), **dict.fromkeys(P_VALUE_NAMES, pa.float32()),
    oddness=pa.float32(), picture=pa.string(),
    truth=_NAME, outside=pa.bool_(), switched=pa.bool_(), truth_views=pa.int32(),
    accuracy=pa.float32(), nll=pa.float32(), right=pa.bool_(),
)  # fmt: skip
BAG_COLUMNS = _schema(
    bag=pa.string(), path=pa.string(), digest=pa.string(), bytes=pa.int64(), start=_STAMP,
    recorded=pa.float64(), frames=pa.int64(), views=pa.int64(), objects=pa.int64(), warned=pa.int64(),
    cameras=pa.list_(pa.string()), dropped=pa.int64(), notes=pa.list_(pa.string()), state=pa.string(),
)  # fmt: skip


def write_table(path: Path, columns: pa.Schema, rows: list[dict[str, Any]]) -> None:
    with writing(path):
        pq.write_table(pa.Table.from_pylist(rows, columns), path, compression="zstd")


class FrameTable:
    """A sink with a row per object and frame; use it in a `with` statement."""

    def __init__(self, path: Path, bag: str, class_names: tuple[str, ...], truth: Truth | None) -> None:
        self._path, self._bag, self._truth = path, bag, truth
        self._names = list(map(escaped, class_names))
        self._numbers = {name: index for index, name in enumerate(class_names)}
        self._columns: dict[str, list[Any]] = {name: [] for name in FRAME_COLUMNS.names}

    def __enter__(self) -> FrameTable:
        with writing(self._path):
            self._file = pq.ParquetWriter(self._path, FRAME_COLUMNS, compression="zstd")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with writing(self._path):
            if kind is None:
                self._flush()
            self._file.close()

    def take(self, time: int, fused: FusedFrame) -> None:
        frame, result = fused.frame, fused.result
        verdicts, kept, count = result.verdicts, result.kept, len(result.kept)
        singles = view_pmf(frame)[kept]
        tracks = [frame.track_ids[row] for row in kept]
        add = {name: column.extend for name, column in self._columns.items()}
        for name, value in (
            ("bag", self._bag),
            ("stamp", frame.header.stamp),
            ("camera", escaped(frame.camera)),
        ):
            add[name]([value] * count)
        add["object"](map(escaped, result.ids))
        add["track"](map(escaped, tracks))
        for name, pmf in (("view", singles), ("fused", result.pmf)):
            add[f"{name}_class"](self._names[top] for top in pmf.argmax(axis=1))
            add[f"{name}_p"](pmf.max(axis=1).tolist())
        add["entropy"](verdicts.entropy.tolist())
        add["ood_score"](verdicts.ood_score.tolist())
        for name, values in zip(P_VALUE_NAMES, verdicts.p_values.T, strict=True):
            add[name](values.tolist())
        add["views"](verdicts.views.sum(axis=1).tolist())
        add["level"](verdicts.level.tolist())
        add["reasons"](map(list, reasons_of(fused)))
        for name, values in zip(
            ("x", "y", "width", "height"), frame.bbox[kept][:, [0, 1, 3, 4]].T, strict=True
        ):
            add[name](values.tolist())
        for row, label in enumerate(self._labels(frame)[kept].tolist()):
            told: tuple[Any, ...] = None, None, None
            if label >= 0:
                told = self._names[label], float(result.pmf[row, label]), float(singles[row, label])
            for name, number in zip(("truth", "truth_p", "view_truth_p"), told, strict=True):
                self._columns[name].append(number)
            self._columns["outside"].append(None if label == UNSAID else label < 0)
        if len(self._columns["bag"]) >= _ROWS:
            with writing(self._path):
                self._flush()

    def _labels(self, frame: ViewFrame) -> np.ndarray:
        if self._truth is None:
            return np.full(len(frame), UNSAID)
        return self._truth.judge(frame).labels(self._numbers)

    def _flush(self) -> None:
        self._file.write_table(pa.table(self._columns, FRAME_COLUMNS))
        for column in self._columns.values():
            column.clear()


def read(file: Path, columns: list[str] | None = None) -> pa.Table:
    """A table with its stamps as nanoseconds: whole numbers, which Python can hold."""
    try:
        table = pq.read_table(file, columns=columns)
    except (OSError, pa.ArrowInvalid) as error:
        raise BagError(f"table '{file}' cannot be read: {error}") from None
    fields = [each.with_type(pa.int64()) if each.type == _STAMP else each for each in table.schema]
    return table.cast(pa.schema(fields))
