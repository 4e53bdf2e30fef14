"""Where replayed frames go: a bag that equals what the live nodes publish, and a table."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, runtime_checkable

from lla_fusion_ros.bags.types import Message
from lla_fusion_ros.bags.writer import BagWriter
from lla_fusion_ros.bundle import Bundle
from lla_fusion_ros.messages import contract
from lla_fusion_ros.messages.detections import Listing
from lla_fusion_ros.stream.frame_messages import (
    Outgoing,
    annotations_message,
    bundle_message,
    fused_messages,
    label_message,
    view_messages,
    view_pmf,
)
from lla_fusion_ros.stream.frames import FusedFrame
from lla_fusion_ros.stream.statement_messages import Statements
from lla_fusion_ros.tracking.geometry import Geometry
from lla_fusion_ros.types.errors import BagError
from lla_fusion_ros.types.printable import escaped
from lla_fusion_ros.warnings.result import P_VALUE_NAMES


class Sink(Protocol):
    """Takes every fused frame, in order; `time` is the recorder's time at which it was complete."""

    def take(self, time: int, fused: FusedFrame) -> None: ...


@runtime_checkable
class PlacedSink(Sink, Protocol):
    """One that also shows where the cameras are; hears of them and of the classes at the beginning."""

    def begin(self, geometry: Geometry, class_names: Sequence[str]) -> None: ...


class BagSink:
    """Writes `/fused_classes`, `/ood_warnings`, labels, annotations, what the source says about geometry and,
    where wanted, the cameras' views and what a planner may rely on."""

    def __init__(
        self, writer: BagWriter, bundle: Bundle, views: bool, statements: Statements | None = None
    ) -> None:
        self._statements = statements
        self._writer = writer
        self._bundle = bundle
        self._views = views and not bundle.for_scores
        self._listing = Listing(class_names=bundle.class_names if bundle.for_scores else None)
        self._cameras: set[str] = set()
        self._geometry: deque[tuple[str, Message]] = deque()  # filled by the thread that reads the source
        writer.add("/" + contract.FUSED_CLASSES, contract.DETECTIONS)
        writer.add("/" + contract.OOD_WARNINGS, contract.DIAGNOSTICS)
        writer.add("/" + contract.LABELS, contract.LABEL_INFO, latched=True)

    def carry(self, camera: str, message: Message) -> None:
        """A message of the source about geometry; it is written before the frames that came after it."""
        topic = f"/{contract.camera_info_topic(camera.lstrip('/'))}" if camera else message.topic
        self._geometry.append((topic, message))

    def write_geometry(self, until: int = 2**63) -> None:
        """What was carried up to a time."""
        while self._geometry and self._geometry[0][1].time <= until:
            topic, message = self._geometry.popleft()
            self._writer.add(topic, message.type, topic == contract.STATIC_TRANSFORMS)
            self._writer.write(topic, message.time, message.data)

    def take(self, time: int, fused: FusedFrame) -> None:
        self.write_geometry(time)
        frame = fused.frame
        if not self._cameras:
            self._write(time, label_message(self._bundle.class_names, frame.header.stamp))
        if self._views and frame.camera not in self._cameras:
            self._write(time, bundle_message(frame.camera, self._bundle, frame.header.stamp), latched=True)
        self._cameras.add(frame.camera)
        for message in view_messages(frame) if self._views else ():
            self._write(time, message)
        for message in fused_messages(fused, self._bundle.class_names, self._listing):
            self._write(time, message)
        for message in self._statements.messages(fused) if self._statements else ():
            self._write(time, message)
        self._write(time, annotations_message(fused, self._bundle.class_names))

    def _write(self, time: int, message: Outgoing, latched: bool = False) -> None:
        topic = "/" + message.topic.lstrip("/")
        self._writer.add(topic, message.type, latched)
        self._writer.write(topic, time, message.data)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """A full disk or a read-only folder is a sentence, not a traceback."""
    try:
        yield
    except OSError as error:
        raise BagError(f"'{path}' cannot be written: {error.strerror}") from error


def cell(name: str) -> str:
    """A name from outside as a cell."""
    return no_formula(escaped(name))


def no_formula(text: str) -> str:
    """A cell that no spreadsheet runs as a formula; numbers stay as they are."""
    if not text.startswith(("=", "+", "-", "@")):
        return text
    try:
        float(text)
    except ValueError:
        return "'" + text
    return text


CSV_COLUMNS = (
    "stamp",
    "camera",
    "track",
    "view_class",
    "view_p",
    "fused_class",
    "fused_p",
    "entropy",
    "normalised_entropy",
    "mutual_information",
    "ood_score",
    *P_VALUE_NAMES,
    "views",
    "level",
    "reasons",
    "x",
    "y",
    "width",
    "height",
)


class CsvSink:
    """One row per track and frame; use it in a `with` statement."""

    def __init__(self, path: Path, class_names: tuple[str, ...]) -> None:
        self._path = path
        self._names = class_names

    def __enter__(self) -> CsvSink:
        with writing(self._path):
            self._file = self._path.open("w", newline="", encoding="utf8")
            self._rows = csv.writer(self._file)
            self._rows.writerow(CSV_COLUMNS)
        return self

    def __exit__(self, *_: object) -> None:
        with writing(self._path):
            self._file.close()

    def take(self, time: int, fused: FusedFrame) -> None:
        with writing(self._path):
            self._write_rows(fused)

    def _write_rows(self, fused: FusedFrame) -> None:
        frame, result = fused.frame, fused.result
        singles = view_pmf(frame)[result.kept]
        seconds, nanoseconds = divmod(frame.header.stamp, 10**9)
        for row, verdict in enumerate(result.verdicts):
            top = int(singles[row].argmax())
            x, y, _, width, height = frame.bbox[result.kept[row]]
            self._rows.writerow(
                (
                    f"{seconds}.{nanoseconds:09d}",
                    cell(frame.camera),
                    cell(result.ids[row]),
                    cell(self._names[top]),
                    f"{singles[row, top]:.6f}",
                    cell(self._names[verdict.top]),
                    f"{verdict.probability:.6f}",
                    f"{verdict.entropy:.6f}",
                    f"{verdict.normalised_entropy:.6f}",
                    f"{verdict.mutual_information:.6g}",
                    f"{verdict.ood_score:.6g}",
                    *(f"{p:.6g}" for p in verdict.p_values.values()),
                    sum(verdict.views.values()),
                    verdict.level.name,
                    " ".join(verdict.reasons),
                    f"{x:.2f}",
                    f"{y:.2f}",
                    f"{width:.2f}",
                    f"{height:.2f}",
                )
            )
