"""Reads a message by its definition: the text of .msg files says which fields lie where in the bytes.

A definition is compiled once into steps: runs of numbers (one `struct` call each), strings, and sequences.
Lengths are checked against the bytes that are left before anything is allocated.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lla_fusion_ros.messages.cdr import CdrReader, Raw
from lla_fusion_ros.messages.detections import MOST_DETECTIONS
from lla_fusion_ros.types.errors import InputError

# struct and numpy letters of the primitive types
_PRIMITIVES = {
    "bool": "?", "byte": "B", "char": "B", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H",
    "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q", "float32": "f", "float64": "d",
}  # fmt: skip

Definitions = Mapping[str, str]  # "package/Type" -> its fields, as in a .msg file
Fields = tuple[tuple[str, Any], ...]  # (name, type); a type is a primitive, "string", Fields or _Array


@dataclass(frozen=True)
class _Array:
    """`count` elements, or as many as the message says where it is None."""

    element: Any
    count: int | None


@dataclass(frozen=True)
class _Text:
    name: str


@dataclass(frozen=True)
class _Run:
    """Numbers without anything of variable length between them.

    Attributes:
        places: (name, first value, values); values is 0 for a plain number, which comes without a tuple.
        structs: byte order and offset modulo 8 -> how to unpack it there, padding included.
        least: its bytes without padding.
    """

    places: tuple[tuple[str, int, int], ...]
    structs: dict[tuple[str, int], struct.Struct]
    least: int


@dataclass(frozen=True)
class _Sequence:
    """Numbers of one kind, which come as one array, or messages, which come as a list of dictionaries."""

    name: str
    letter: str
    numbers: int
    steps: tuple[Any, ...]
    least: int


def parse_definition(type_name: str, definitions: Definitions) -> Fields:
    """The fields of a type and of all types in it, without comments, constants and names of packages."""
    return _parse(_short(type_name), definitions, 0)


def _parse(name: str, definitions: Definitions, depth: int) -> Fields:
    if name not in definitions or depth > 20:
        raise InputError(f"the definition of message type '{name[:80]}' is not known")
    package = name.partition("/")[0]
    fields = []
    for line in definitions[name].splitlines():
        words = line.split("#", 1)[0].split()
        if len(words) < 2 or "=" in words[1] or (len(words) > 2 and words[2].startswith("=")):
            continue  # empty, or a constant
        kind, bracket, length = words[0].partition("[")
        kind = kind.partition("<=")[0]
        inner: Any = kind
        if kind not in _PRIMITIVES and kind != "string":
            full = _short(kind) if "/" in kind else f"{package}/{kind}"
            inner = _parse("std_msgs/Header" if full.endswith("/Header") else full, definitions, depth + 1)
        if bracket:
            length = length.rstrip("]")
            inner = _Array(inner, int(length) if length.isdigit() else None)
        fields.append((words[1], inner))
    return tuple(fields)


def split_definition(type_name: str, text: str) -> dict[str, str]:
    """The definitions in the text a bag stores: the type's own, then `MSG: package/Type` and theirs."""
    parts: dict[str, str] = {}
    name, lines = _short(type_name), list[str]()
    for line in text.splitlines():
        if line.startswith("MSG:"):
            parts[name] = "\n".join(lines)
            name, lines = _short(line[4:].strip()), []
        elif not (line and set(line.strip()) == {"="}):
            lines.append(line)
    parts[name] = "\n".join(lines)
    return parts


def _short(type_name: str) -> str:
    return type_name.replace("/msg/", "/")


class Layout:
    """Where the fields of a type lie; `read` gives them by their names, nested ones as `bbox.center.x`."""

    def __init__(self, type_name: str, definitions: Definitions) -> None:
        self.fields = parse_definition(type_name, definitions)
        self._steps = _compile(_leaves(self.fields))

    def read(self, raw: Raw) -> dict[str, Any]:
        """The fields of a message; InputError where the bytes are not exactly one message of this type."""
        reader = CdrReader(raw)
        order = "<" if raw[1] == 1 else ">"
        values = _walk(reader, order, self._steps)
        reader.finish()
        return values


def _leaves(fields: Fields, prefix: str = "") -> list[tuple[str, Any]]:
    """The fields, those of nested messages in their places; short arrays of equal numbers stay one field."""
    leaves: list[tuple[str, Any]] = []
    for name, kind in fields:
        if isinstance(kind, tuple):
            leaves += _leaves(kind, f"{prefix}{name}.")
        elif isinstance(kind, _Array) and kind.count is not None and not _uniform(kind):
            for index in range(kind.count):
                leaves += _leaves(((str(index), kind.element),), f"{prefix}{name}.")
        else:
            leaves.append((prefix + name, kind))
    return leaves


def _uniform(kind: Any) -> tuple[str, int] | None:
    """Letter and count of a type that is nothing but a fixed number of equal primitives."""
    if isinstance(kind, str):
        return (_PRIMITIVES[kind], 1) if kind in _PRIMITIVES else None
    if isinstance(kind, _Array):
        inner = _uniform(kind.element) if kind.count is not None else None
        return (inner[0], inner[1] * kind.count) if inner and kind.count else None
    parts = [_uniform(inner) for _, inner in kind]
    letters = {part[0] if part else "" for part in parts}
    if len(letters) != 1 or "" in letters:
        return None
    return letters.pop(), sum(part[1] for part in parts if part)


def _compile(leaves: list[tuple[str, Any]]) -> tuple[Any, ...]:
    steps: list[Any] = []
    numbers: list[tuple[str, str, int]] = []
    for name, kind in leaves:
        uniform = _uniform(kind)
        if uniform:
            numbers.append((name, uniform[0], 0 if isinstance(kind, str) else uniform[1]))
            continue
        if numbers:
            steps.append(_run(numbers))
            numbers = []
        if kind == "string":
            steps.append(_Text(name))
            continue
        inner = _uniform(kind.element)
        if inner:
            steps.append(_Sequence(name, inner[0], inner[1], (), struct.calcsize("=" + inner[0]) * inner[1]))
        else:
            element = kind.element if isinstance(kind.element, tuple) else (("", kind.element),)
            below = _compile(_leaves(element))
            steps.append(_Sequence(name, "", 0, below, max(1, sum(_least(step) for step in below))))
    if numbers:
        steps.append(_run(numbers))
    return tuple(steps)


def _least(step: Any) -> int:
    """Bytes that a step takes at least: four for the length of a string or sequence."""
    return step.least if isinstance(step, _Run) else 4


def _run(numbers: list[tuple[str, str, int]]) -> _Run:
    places, first = [], 0
    for name, _, count in numbers:
        places.append((name, first, count))
        first += count or 1
    letters = [(letter, count or 1) for _, letter, count in numbers]
    structs = {}
    for order in "<>":
        for offset in range(8):
            form, at = order, offset
            for letter, count in letters:
                size = struct.calcsize("=" + letter)
                form += f"{-at % size}x{count}{letter}"
                at += -at % size + size * count
            structs[order, offset] = struct.Struct(form)
    return _Run(tuple(places), structs, sum(struct.calcsize("=" + letter) * n for letter, n in letters))


def _walk(reader: CdrReader, order: str, steps: tuple[Any, ...]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for step in steps:
        if isinstance(step, _Run):
            packed = step.structs[order, reader.at % 8]
            found = packed.unpack(reader.take(packed.size))
            for name, first, count in step.places:
                values[name] = found[first : first + count] if count else found[first]
        elif isinstance(step, _Text):
            values[step.name] = reader.string()
        else:
            count = reader.count(step.least)
            if step.letter:
                if count:
                    reader.align(struct.calcsize("=" + step.letter))
                values[step.name] = np.frombuffer(reader.take(count * step.least), order + step.letter)
            elif count > MOST_DETECTIONS:
                raise InputError(f"message lists {count} {step.name}, more than {MOST_DETECTIONS}")
            else:
                values[step.name] = [_walk(reader, order, step.steps) for _ in range(count)]
    return values
