"""What a bag holds: topics, messages, and what was lost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a bag.

    Attributes:
        definition: the message definition the recorder stored, or "" where it stored none.
        latched: whether late subscribers are to get the last message (transient local).
        reliable: whether the recorder saw a reliable publisher.
    """

    name: str
    type: str
    count: int = 0
    definition: str = ""
    latched: bool = False
    reliable: bool = True


class Message(NamedTuple):
    """One recorded message; `data` is CDR with its four-byte header, `time` the recorder's clock in ns."""

    topic: str
    type: str
    time: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Summary:
    """What one file of a bag, or a whole bag, holds; start is above end where it holds nothing."""

    topics: tuple[Topic, ...]
    start: int
    end: int

    @property
    def count(self) -> int:
        return sum(topic.count for topic in self.topics)

    @property
    def duration(self) -> float:
        """Seconds between the first and the last message."""
        return max(0, self.end - self.start) / 1e9


def full_type(name: str) -> str:
    """`sensor_msgs/Image`, as some recorders write it, and `sensor_msgs/msg/Image` are the same type."""
    package, _, rest = name.partition("/")
    return name if "/" in rest or not rest else f"{package}/msg/{rest}"


def merge(parts: list[Summary]) -> Summary:
    """The summary of files that belong together: counts of the same topic add up."""
    topics: dict[tuple[str, str], Topic] = {}
    for part in parts:
        for topic in part.topics:
            key = topic.name, topic.type
            known = topics.get(key, replace(topic, count=0))
            topics[key] = replace(
                known,
                count=known.count + topic.count,
                definition=known.definition or topic.definition,
                latched=known.latched or topic.latched,
                reliable=known.reliable and topic.reliable,
            )
    filled = [part for part in parts if part.count]
    start = min((part.start for part in filled), default=0)
    end = max((part.end for part in filled), default=-1)
    return Summary(tuple(sorted(topics.values(), key=lambda topic: topic.name)), start, end)
