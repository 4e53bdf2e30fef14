"""The truth file beside a bag: what each track really is, so that a replay can be scored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lla_fusion_ros.errors import InputError

FORMAT = "lla_fusion_ros truth 1"
OUTSIDE = -1


@dataclass(frozen=True, slots=True)
class TruthSpan:
    """What an id stands for from a stamp (ns) on; `class_name` is None for what is outside the classes."""

    since: int
    class_name: str | None


@dataclass(frozen=True, slots=True)
class Truth:
    """Track ids and what they are; several spans where the id moves to another object.

    Attributes:
        tracks: spans by track id, in time order.
        data_set: where the objects come from.
        class_names: all classes of that data set.
    """

    tracks: Mapping[str, Sequence[TruthSpan]]
    data_set: str = ""
    class_names: Sequence[str] = field(default_factory=tuple)

    def class_at(self, track_id: str, stamp: int) -> TruthSpan | None:
        """What the id stands for at that time, or None where the truth does not say."""
        found = None
        for span in self.tracks.get(track_id, ()):
            if found is None or span.since <= stamp:
                found = span
        return found

    def label_at(self, track_id: str, stamp: int, numbers: Mapping[str, int]) -> int | None:
        """Class number at that time, OUTSIDE for what the bundle's `numbers` do not name, None if unsaid."""
        span = self.class_at(track_id, stamp)
        if span is None:
            return None
        return OUTSIDE if span.class_name is None else numbers.get(span.class_name, OUTSIDE)


def write_truth(truth: Truth, path: Path) -> None:
    document = {
        "format": FORMAT,
        "data_set": truth.data_set,
        "class_names": list(truth.class_names),
        "tracks": {
            name: [
                {"since": span.since, "class": span.class_name, "outside": span.class_name is None}
                for span in spans
            ]
            for name, spans in truth.tracks.items()
        },
    }
    path.write_text(json.dumps(document, indent=1) + "\n")


def read_truth(path: Path) -> Truth:
    """Check and read a truth file; the sentence of an error says what is wrong with it."""
    try:
        document = json.loads(path.read_text())
    except OSError as error:
        raise InputError(f"truth file '{path}' cannot be read: {error.strerror}") from error
    except RecursionError:
        raise InputError(f"truth file '{path}' is nested too deeply to be one") from None
    except ValueError as error:
        raise InputError(f"truth file '{path}' is not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(f'truth file \'{path}\' does not say "format": "{FORMAT}"')
    tracks = {}
    try:
        for name, spans in document["tracks"].items():
            read = [
                TruthSpan(int(span["since"]), None if span.get("outside") else str(span["class"]))
                for span in spans
            ]
            tracks[str(name)] = tuple(sorted(read, key=lambda span: span.since))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(f"truth file '{path}': track entries are malformed ({error!r})") from error
    names = document.get("class_names", [])
    if not isinstance(names, list):
        raise InputError(f"truth file '{path}': \"class_names\" is {str(names)[:60]!r}, not a list of names")
    return Truth(tracks, str(document.get("data_set", "")), tuple(map(str, names)))
