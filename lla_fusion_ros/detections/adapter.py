"""An adapter: what one message type looks like, and how its fields become detections.

Every file in `adapters/` has an ADAPTER and is found by itself.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from lla_fusion_ros.detections import adapters
from lla_fusion_ros.detections.frame import FrameDetections, FrameDetections3D, Hypotheses, given_ids
from lla_fusion_ros.detections.layout import Definitions, Layout, parse_definition, split_definition
from lla_fusion_ros.detections.standard import STANDARD
from lla_fusion_ros.messages.cdr import NANOSECONDS, Header, Raw
from lla_fusion_ros.types.errors import InputError

Frame = FrameDetections | FrameDetections3D
Message = dict[str, Any]  # field -> value, as Layout reads them


@dataclass(frozen=True)
class Adapter:
    """Reads one message type, without ROS.

    Attributes:
        types: names of the type, `package/Type`: today's first, then those of older packages.
        definitions: the fields of its own types, one mapping for each version in use, the newest first.
        convert: from the fields of a message to detections.
        parse: (bytes, with scores) -> detections, where there is a quicker way than by definition.
        in_space: its boxes are FrameDetections3D, to be projected into the cameras.
    """

    types: tuple[str, ...]
    definitions: tuple[Definitions, ...]
    convert: Callable[[Message], Frame]
    parse: Callable[[Raw, bool], Frame] | None = None
    in_space: bool = False

    @property
    def package(self) -> str:
        """The ROS package that has the message type."""
        return self.types[0].partition("/")[0]

    def read(self, raw: Raw, with_scores: bool = True) -> Frame:
        """The detections of a message; InputError where its bytes are damaged or of another definition.

        Without scores, a message that lists many classes is read in a fraction of the time.
        """
        if self.parse is not None:
            return self.parse(raw, with_scores)
        refusal = InputError("no definition")
        for layout in self._layouts:
            try:
                return self.convert(layout.read(raw))
            except InputError as error:
                refusal = error
        raise refusal

    def check_definition(self, text: str) -> None:
        """InputError where a recorded definition has other fields than those known here.

        An empty text and one in IDL, which some packages are recorded with, are taken at their word.
        """
        if not text.strip() or "IDL:" in text:
            return
        recorded = parse_definition(self.types[0], split_definition(self.types[0], text))
        if all(recorded != layout.fields for layout in self._layouts):
            raise InputError(
                f"{self.types[0]} was recorded with other fields than this package knows: "
                f"record it with today's {self.package}, or add its version to the adapter"
            )

    @cached_property
    def _layouts(self) -> tuple[Layout, ...]:
        return tuple(Layout(self.types[0], {**STANDARD, **own}) for own in self.definitions)


def adapter_for(type_name: str) -> Adapter | None:
    """The adapter of `package/Type` or `package/msg/Type`, or None where the type is not known."""
    return known_types().get(type_name.replace("/msg/", "/"))


def image_adapter(type_name: str) -> Adapter:
    """The same; InputError where the type is not known."""
    adapter = adapter_for(type_name)
    if adapter is None:
        known = ", ".join(sorted(known_types()))
        raise InputError(f"detections of type '{type_name[:100]}' cannot be read, only {known}")
    return adapter


@cache
def known_types() -> dict[str, Adapter]:
    """Every message type that can be read, as `package/Type`."""
    found: dict[str, Adapter] = {}
    for module in sorted(pkgutil.iter_modules(adapters.__path__), key=lambda module: module.name):
        adapter: Adapter = importlib.import_module(f"{adapters.__name__}.{module.name}").ADAPTER
        found.update(dict.fromkeys(adapter.types, adapter))
    return found


def header_of(message: Message, prefix: str = "header") -> Header:
    seconds, nanoseconds = message[f"{prefix}.stamp.sec"], message[f"{prefix}.stamp.nanosec"]
    return Header(seconds * NANOSECONDS + nanoseconds, message[f"{prefix}.frame_id"])


def bbox_of(rows: Iterable[Sequence[float]]) -> np.ndarray:
    """x, y, theta, width, height of each detection.  [detections, 5]"""
    return np.array(list(rows), np.float64).reshape(-1, 5)


def hypotheses_of(results: list[Message], prefix: str = "hypothesis.") -> Hypotheses:
    """Of vision_msgs' results."""
    return tuple((result[prefix + "class_id"], result[prefix + "score"]) for result in results)


VISION_BOX = (
    "bbox.center.position.x",
    "bbox.center.position.y",
    "bbox.center.theta",
    "bbox.size_x",
    "bbox.size_y",
)


def vision_boxes(
    header: Header, rows: list[Message], ids: Iterable[str], prefix: str = "hypothesis."
) -> FrameDetections:
    """Of rows with `bbox` and `results` of vision_msgs and ids of one camera's tracker."""
    given, scope = given_ids(tuple(ids), "camera")
    bbox = bbox_of([row[field] for field in VISION_BOX] for row in rows)
    scores = tuple(hypotheses_of(row["results"], prefix) for row in rows)
    return FrameDetections(header, bbox, given, scores, scope)
