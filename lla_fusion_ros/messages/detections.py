"""vision_msgs/Detection2DArray: boxes with track ids in, boxes with class distributions out.

Every hypothesis drags a pose with covariance, so 20 tracks of 43 classes make 318 kB; as Python objects that
costs more than the networks. Here all hypotheses are copied from one numpy template and only the scores,
their order, the boxes and the ids are filled in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lla_fusion_ros.messages.cdr import CdrReader, CdrWriter, Header, Raw
from lla_fusion_ros.types.errors import InputError

# After its string a hypothesis is 44 doubles: score, position, orientation, covariance.
_DOUBLES = 8 * (1 + 3 + 4 + 36)
# A class number of up to 3 digits with length and terminator fills 8 bytes, so all hypotheses take the same
# room and the next one starts aligned again.
_RECORD = 8 + _DOUBLES
_ORIENTATION_W = 8 + 8 * (1 + 3 + 3)
MAX_CLASSES = 1000
REST = ""  # class_id of the hypothesis for all classes that are not listed
# No camera sees so many objects; reading more would hold everything else up.
MOST_DETECTIONS = 10_000
# Fewest bytes of a detection: stamp, empty frame_id, no results, box, empty id.
_LEAST_DETECTION = 8 + 4 + 4 + 40 + 4


@dataclass(frozen=True, slots=True)
class Listing:
    """Which classes of a distribution a message lists, the surest first.

    Attributes:
        mass: list classes until they carry this share of the probability; 1 lists all.
        most: list at most so many; 0 sets no limit.
        class_names: what `class_id` says in the place of the class's number.
        numbers: how many to list of each detection, whatever they carry.
        rest: one more hypothesis, of an empty `class_id`, has what the classes that are not listed carry.
        always: so many of the last classes are listed whatever they carry.
    """

    mass: float = 1.0
    most: int = 0
    class_names: Sequence[str] | None = None
    numbers: Sequence[int] | None = None
    rest: bool = True
    always: int = 0

    def counts(self, scores: np.ndarray) -> np.ndarray:
        """How many are listed of each; the scores are sorted.  [detections, classes] -> [detections]"""
        classes = scores.shape[1]
        if self.numbers is not None:
            counts = np.asarray(self.numbers)
        elif self.mass >= 1.0:
            counts = np.full(len(scores), classes)
        else:
            counts = (np.cumsum(scores, axis=1) < self.mass).sum(axis=1) + 1
        return np.minimum(counts, min(self.most or classes, classes))


ALL = Listing()


@dataclass(frozen=True, slots=True)
class Detections:
    """The part of a Detection2DArray that this package uses.

    Attributes:
        ids: track ids, byte for byte (undecodable bytes as surrogates).
        bbox: x, y, theta, size_x, size_y in pixels, as in the message.        [detections, 5]
        scores: (class_id, score) of every hypothesis, in the message's order; only where asked for.
    """

    header: Header
    ids: tuple[str, ...]
    bbox: np.ndarray
    scores: tuple[tuple[tuple[str, float], ...], ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """About how much memory it takes; without the scores."""
        return self.bbox.nbytes + sum(map(len, self.ids))

    @property
    def boxes(self) -> np.ndarray:
        """cx, cy, w, h in pixels.  [detections, 4]"""
        return self.bbox[:, [0, 1, 3, 4]]

    def take(self, rows: np.ndarray) -> Detections:
        """Some of the detections, by index; without their scores."""
        return Detections(self.header, tuple(self.ids[row] for row in rows), self.bbox[rows])


def parse_detections(raw: Raw, with_scores: bool = False, most: int | None = None) -> Detections:
    """Ids and boxes of a Detection2DArray, and the first hypotheses of each, at most `most`, where asked for;
    InputError if damaged."""
    reader = CdrReader(raw)
    header = reader.header()
    count = reader.count(_LEAST_DETECTION)
    if count > MOST_DETECTIONS:
        raise InputError(f"message lists {count} detections, more than {MOST_DETECTIONS}")
    ids: list[str] = []
    bbox = np.empty((count, 5))
    scores: list[tuple[tuple[str, float], ...]] = []
    for row in range(count):
        reader.align(4)
        reader.skip(8)  # the stamp; the array's own header counts
        reader.skip_string()
        results = reader.count(_DOUBLES)
        if with_scores:
            scores.append(tuple(_read_hypothesis(reader) for _ in range(results)[:most]))
            results -= len(scores[-1])
        _skip_hypotheses(reader, results)
        bbox[row] = reader.f64(5)
        ids.append(reader.string())
    reader.finish()
    return Detections(header, tuple(ids), bbox, tuple(scores))


def _read_hypothesis(reader: CdrReader) -> tuple[str, float]:
    class_id, score = reader.string(), float(reader.f64(1)[0])
    reader.skip(_DOUBLES - 8)
    return class_id, score


def _skip_hypotheses(reader: CdrReader, count: int) -> None:
    """Step over hypotheses; where all class ids are short (ours are) in one jump, checked in one go."""
    if count > 4:
        reader.skip_string()
        reader.align(8)
        reader.skip(_DOUBLES)
        count -= 1
        lengths = reader.u32_column(reader.at, _RECORD, count)
        if lengths is not None and lengths.max() <= 4:
            reader.skip(_RECORD * count)
            return
    for _ in range(count):
        reader.skip_string()
        reader.align(8)
        reader.skip(_DOUBLES)


@lru_cache(maxsize=4)
def _hypothesis_template(classes: int) -> np.ndarray:
    """One record per class and one for the rest, as they lie in the message from a multiple of 8 on.

    [classes + 1, bytes]
    """
    if not 1 <= classes <= MAX_CLASSES:
        raise InputError(f"{classes} classes: a message can list 1 to {MAX_CLASSES}")
    template = np.zeros((classes + 1, _RECORD), np.uint8)
    for index, name in enumerate([*(str(index).encode() for index in range(classes)), REST.encode()]):
        template[index, 0] = len(name) + 1
        template[index, 4 : 4 + len(name)] = np.frombuffer(name, np.uint8)
    template[:, _ORIENTATION_W : _ORIENTATION_W + 8] = np.frombuffer(np.float64(1.0).tobytes(), np.uint8)
    return template


def _hypotheses(pmf: np.ndarray, listing: Listing) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of each detection: classes, surest first, then the rest where there is one; and their records.

    A list of [hypotheses], [hypotheses, bytes]; the rest has the number after the last class.
    """
    classes = pmf.shape[1]
    order = np.argsort(-pmf, axis=1, kind="stable")
    scores = np.take_along_axis(pmf, order, axis=1).astype("<f8", copy=False)
    counts = listing.counts(scores)
    found = []
    for row, count in enumerate(counts.tolist()):
        listed, own = order[row, :count], scores[row, :count]
        if listing.always:
            also = order[row, count:] >= classes - listing.always
            listed = np.append(listed, order[row, count:][also])
            own = np.append(own, scores[row, count:][also])
        if listing.rest and len(listed) < classes and (rest := 1.0 - own.sum()) > 0:
            listed, own = np.append(listed, classes), np.append(own, rest)
        records = _hypothesis_template(classes)[listed]
        records[:, 8:16] = np.ascontiguousarray(own)[:, None].view(np.uint8)
        found.append((listed, records))
    return found


def _write_numbered(writer: CdrWriter, records: np.ndarray) -> None:
    block = records.reshape(-1).data
    if writer.size % 8:  # the first class number starts off the grid: its doubles move by 4 bytes
        writer.raw(block[:8])
        block = block[8:]
    writer.align(8)
    writer.raw(block)


def _write_named(writer: CdrWriter, records: np.ndarray, names: Sequence[str]) -> None:
    for record, name in zip(records, names, strict=True):
        writer.string(name)
        writer.align(8)
        writer.raw(memoryview(record[8:]))


def write_detections(
    header: Header,
    ids: Sequence[str],
    bbox: np.ndarray,
    pmf: np.ndarray | None = None,
    listing: Listing = ALL,
) -> bytes:
    """A Detection2DArray in which every detection carries the array's header.

    Args:
        bbox: x, y, theta, size_x, size_y.                                       [detections, 5]
        pmf: class distributions, listed surest first under the class's number.  [detections, classes]
        listing: which classes of them.
    """
    if len(bbox) != len(ids) or (pmf is not None and len(pmf) != len(ids)):
        raise InputError(f"{len(ids)} ids, {len(bbox)} boxes, {None if pmf is None else len(pmf)} pmfs")
    writer = CdrWriter()
    writer.header(header)
    writer.u32(len(ids))
    own_header = CdrWriter()
    own_header.header(header)
    own_header.align(4)
    header_bytes = own_header.message()[4:]
    hypotheses = _hypotheses(np.asarray(pmf, np.float64), listing) if pmf is not None and len(ids) else None
    names = None if listing.class_names is None else [*listing.class_names, REST]
    boxes = np.ascontiguousarray(bbox, "<f8").view(np.uint8)
    for row, track_id in enumerate(ids):
        writer.align(4)
        writer.raw(header_bytes)
        if hypotheses is None:
            writer.u32(0)
        else:
            listed, records = hypotheses[row]
            writer.u32(len(listed))
            if names is None:
                _write_numbered(writer, records)
            else:
                _write_named(writer, records, [names[index] for index in listed])
        writer.align(8)
        writer.raw(memoryview(boxes[row]))
        writer.string(track_id)
    return writer.message()
