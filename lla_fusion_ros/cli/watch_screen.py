"""The terminal of `lla-fusion watch`: a live table, keys, and the history of one object."""

from __future__ import annotations

import os
import re
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lla_fusion_ros.cli.demo_screen import BAR, REASONS, SHORT_BAR, WIDE, object_table
from lla_fusion_ros.cli.words import printable
from lla_fusion_ros.watch.scene import IN_VIEW, Point, Scene, Watched

SORTS = {
    "id": lambda each: [int(part) if part.isdecimal() else 0 for part in each.id.split("/")] + [each.number],
    "warning": lambda each: [not each.needs_a_look, -each.level, each.number],
    "probability": lambda each: [each.p],
    "entropy": lambda each: [-each.entropy],
    "class": lambda each: [each.label, each.number],
}
_EVERY = 0.25  # seconds between two pictures
_HEIGHTS = " ▁▂▃▄▅▆▇█"
_ESCAPE = "\x1b"


@dataclass
class View:
    """What the keys have chosen."""

    sort: str = "id"
    only_warned: bool = False
    paused: bool = False
    words: str = ""
    typing: bool = False
    chosen: int = 0  # number of the object under the cursor
    history: bool = False
    done: bool = False
    shown: list[Watched] = field(default_factory=list)

    def press(self, key: str) -> None:
        if self.typing:
            self._type(key)
        elif key in ("q", "\x03"):
            self.done = True
        elif key == "s":
            names = list(SORTS)
            self.sort = names[(names.index(self.sort) + 1) % len(names)]
        elif key == "w":
            self.only_warned = not self.only_warned
        elif key in ("p", " "):
            self.paused = not self.paused
        elif key == "/":
            self.typing, self.words = True, ""
        elif key in ("\r", "\n"):
            self.history = not self.history
        elif key == _ESCAPE:
            self.history, self.words = False, "" if not self.history else self.words
        elif key in ("j", _ESCAPE + "[B", "k", _ESCAPE + "[A"):
            self._move(1 if key in ("j", _ESCAPE + "[B") else -1)

    def _type(self, key: str) -> None:
        if key in ("\r", "\n"):
            self.typing = False
        elif key == _ESCAPE:
            self.typing, self.words = False, ""
        elif key in ("\x7f", "\x08"):
            self.words = self.words[:-1]
        elif key.isprintable():
            self.words += key

    def _move(self, step: int) -> None:
        numbers = [each.number for each in self.shown]
        if numbers:
            at = numbers.index(self.chosen) + step if self.chosen in numbers else 0
            self.chosen = numbers[min(max(at, 0), len(numbers) - 1)]

    def choose(self, objects: list[Watched]) -> list[Watched]:
        """Those to show, in order; the cursor stays on one of them."""
        now, words = time.monotonic(), self.words.lower()
        self.shown = sorted(
            (
                each
                for each in objects
                if each.label
                and now - each.heard < IN_VIEW
                and (each.needs_a_look or not self.only_warned)
                and words in f"{each.id} {each.label} {each.reasons}".lower()
            ),
            key=SORTS[self.sort],
        )
        if self.shown and self.chosen not in {each.number for each in self.shown}:
            self.chosen = self.shown[0].number
        return self.shown


def show(scene: Scene, end: float) -> None:
    """Until q, Ctrl-C or the end."""
    console, view = Console(), View()
    frame: RenderableType = Text("looking for a running fusion …")
    with _keys() as read, Live(console=console, screen=True, auto_refresh=False) as live:
        drawn = 0.0
        while not view.done and time.monotonic() < end:
            keys = read(_EVERY)
            for key in keys:
                view.press(key)
            if not keys and time.monotonic() - drawn < _EVERY / 2:
                continue
            if not view.paused or keys:
                frame = picture(scene, view, console.height, console.width)
                drawn = time.monotonic()
                live.update(frame, refresh=True)


def picture(scene: Scene, view: View, height: int, width: int) -> Group:
    """The whole screen."""
    objects = view.choose(scene.objects())
    state = scene.snapshot()
    parts: list[RenderableType] = [_head(state, objects, view)]
    room = height - 4 - len(state["cameras"])
    parts += [_camera(camera) for camera in state["cameras"]]
    if view.history and objects and (points := scene.history(view.chosen)):
        parts += _history(next(each.id for each in objects if each.number == view.chosen), points, width)
        room -= 7
    if objects:
        parts.append(_table(objects, view.chosen, max(room - 4, 3), width))
    elif not state["objects"]:
        parts.append(
            Text("\nNothing is fused on this graph yet. Is the node active, is ROS_DOMAIN_ID the same?")
        )
    else:
        parts.append(Text("\nNothing in view that fits the filter."))
    parts.append(_keys_line(view))
    return Group(*parts)


def _head(state: dict, objects: list[Watched], view: View) -> Text:
    warned = sum(each.level > 0 for each in objects)
    unsure = sum(each.answer == "cannot tell" for each in objects)
    text = Text(f"{len(objects)} objects   ", style="bold")
    text.append(f"{warned} warned of   ", style="bold red" if warned else "dim")
    text.append(f"{unsure} cannot tell   " if unsure else "", style="bold yellow")
    for node in state["nodes"]:
        words = [node["name"], node["message"], f"fuser {node.get('fuser', '?')}"]
        words += [f"latency {node['latency p50 ms']} ms"] if "latency p50 ms" in node else []
        text.append(printable(", ".join(words)) + "   ", style="yellow" if node["level"] else "dim")
    if view.paused:
        text.append("PAUSED", style="reverse")
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _camera(camera: dict) -> Text:
    lost = f", lost {camera['lost']}" if camera["lost"] else ""
    words = f"  {camera['name']}: {camera['rate']:.1f} Hz, {camera['message'] or 'no diagnostics'}{lost}"
    style = ("dim", "yellow", "red")[min(camera["level"], 2)]
    return Text(printable(words), style=style, no_wrap=True, overflow="ellipsis")


def _table(objects: list[Watched], chosen: int, most: int, width: int) -> Table:
    numbers = [each.number for each in objects]
    first = max(min(numbers.index(chosen) - most // 2, len(objects) - most), 0) if chosen in numbers else 0
    cameras = sorted({camera for each in objects for camera in each.seen})
    wide = width >= WIDE
    bar = BAR if wide else SHORT_BAR
    sets = ("set",) if wide else ()
    names = ("object", *map(printable, cameras), "fused", "", "error ≤", *sets, "entropy", "warning")
    shown = objects[first : first + most]
    table = object_table(names, (printable(each.id) for each in shown), bar)
    for each in shown:
        colour = "red" if each.level else "green" if each.p > 0.8 else "yellow"
        singles = []
        for camera in cameras:
            label = each.seen.get(camera, ("–", 0.0))[0]
            against = camera in each.seen and label != each.label
            singles.append(Text(printable(label), style="bright_red" if against else "dim"))
        said = ", ".join(REASONS.get(reason, reason) for reason in each.reasons.split())
        table.add_row(
            Text(printable(each.id)),
            *singles,
            Text(printable(each.label), style="bold"),
            Text(f"{'█' * round(each.p * bar):<{bar}} {each.p:4.0%}", style=colour),
            Text("" if each.bound is None or each.bound >= 1 else f"{each.bound:.1%}"),
            *([Text(printable(each.choices))] if wide else []),
            Text(f"{each.entropy:.2f}"),
            Text(printable(said or (each.answer if each.needs_a_look else "")), style="bold red"),
            style="reverse" if each.number == chosen else "",
        )
    if len(objects) > most:
        table.caption = Text(f"{first + 1} to {min(first + most, len(objects))} of {len(objects)}")
    return table


def _history(name: str, points: list[Point], width: int) -> list[RenderableType]:
    """The last of them as bars of probability, entropy, warnings and changes."""
    last = points[-max(width - 14, 10) :]
    changes = [
        f"{(after.stamp - points[-1].stamp):.1f} s: {before.label} → {after.label}"
        for before, after in zip(points, points[1:], strict=False)
        if before.label != after.label
    ]

    def line(name: str, values: list[float], style: str) -> Text:
        bars = "".join(_HEIGHTS[round(min(max(value, 0.0), 1.0) * 8)] for value in values)
        return Text(f"{name:<13}", style="dim").append(bars, style=style)

    return [
        Text(
            "\n" + printable(f"{name}, {points[-1].label}: the last {last[-1].stamp - last[0].stamp:.1f} s"),
            style="bold",
        ),
        line("probability", [point.p for point in last], "green"),
        line("entropy / 4", [point.entropy / 4 for point in last], "yellow"),
        line("warned", [float(bool(point.level or point.reasons)) for point in last], "red"),
        Text(printable("class changes " + ("; ".join(changes[-3:]) or "none"))),
    ]


def _keys_line(view: View) -> Text:
    if view.typing:
        return Text(f"filter: {view.words}█   Enter keeps it, Esc clears it", style="bold")
    filtered = f" [{view.words}]" if view.words else ""
    warned = " [on]" if view.only_warned else ""
    return Text(
        printable(
            f"q quit  s sort [{view.sort}]  / filter{filtered}  w only what needs a look{warned}  "
            "p pause  ↑↓ choose  Enter history  Esc back"
        ),
        style="dim",
    )


def split_keys(text: str) -> list[str]:
    """What was typed since the last look; an arrow is one key."""
    return [key.replace("\x1bO", "\x1b[") for key in re.findall(r"\x1b[\[O][A-Z]|.", text, re.DOTALL)]


@contextmanager
def _keys() -> Iterator:
    """A function that waits so many seconds for keys; the terminal is as before in the end."""
    place = sys.stdin.fileno()
    before = termios.tcgetattr(place)

    def read(seconds: float) -> list[str]:
        if not select.select([place], [], [], seconds)[0]:
            return []
        return split_keys(os.read(place, 256).decode(errors="ignore"))

    try:
        tty.setcbreak(place)
        yield read
    finally:
        termios.tcsetattr(place, termios.TCSADRAIN, before)
