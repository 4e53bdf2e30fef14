"""What `lla-fusion demo` shows while the nodes run: every object in view, on a terminal as a live table."""

from __future__ import annotations

from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lla_fusion_ros.cli.words import talk
from lla_fusion_ros.demo.live import LiveState
from lla_fusion_ros.signworld import CLASS_NAMES

BAR, SHORT_BAR = 12, 5  # characters
WIDE = 110  # of a terminal
LONGEST_ID = 20
REASONS = {
    "out_of_distribution": "unknown object",
    "identity_switch": "identity switch",
    "camera_disagreement": "cameras disagree",
    "cannot_tell": "cannot tell: bad pictures",
    "nothing_there": "nothing there",
}


class DemoScreen:
    """A live table on a terminal; plain lines elsewhere.

    Args:
        frames: of the drive, for the bar while they are rendered.
    """

    def __init__(self, quiet: bool, frames: int = 0) -> None:
        self._console = Console(stderr=quiet, quiet=talk.level < 0)
        self._frames = frames
        self._live = Live(console=self._console, refresh_per_second=8, transient=True)
        self._plain_at = -5.0

    def __enter__(self) -> DemoScreen:
        if self._console.is_terminal and talk.level >= 0:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def tell(self, text: str) -> None:
        self._console.print(Text.assemble(("·", "bold cyan"), f" {text}"), highlight=False)

    def watch(self, state: LiveState) -> None:
        if self._console.is_terminal:
            self._live.update(_table(state, self._console.width) if state.frames else self._rendering(state))
        elif state.frames and state.seconds >= self._plain_at + 5:
            self._plain_at = state.seconds
            self._console.print(
                f"  {state.seconds:4.0f} s  {state.fused_views} views fused, "
                f"{len(state.in_view())} objects in view, {len(state.warned)} warned of, "
                f"{state.changes} class changes so far",
                soft_wrap=True,
            )

    def _rendering(self, state: LiveState) -> Text:
        done = state.rendered / max(self._frames, 1)
        return Text(f"  {'█' * round(done * BAR):·<{BAR}} {done:4.0%}")


def object_table(names: Iterable[str], ids: Iterable[str], bar: int) -> Table:
    """Without rows: ids and numbers are shown whole, names share the rest of the line."""
    table = Table(expand=True, header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    longest = max((cell_len(each) for each in ids), default=0)
    widths = {"object": min(max(longest, 6), LONGEST_ID), "": bar + 5, "error ≤": 7, "entropy": 7}
    for name in names:
        own = widths.get(name)
        ratio = None if own is not None else 3 if name in ("fused", "warning") else 2
        table.add_column(Text(name), no_wrap=True, overflow="ellipsis", width=own, ratio=ratio)
    return table


def _table(state: LiveState, width: int) -> Group:
    tracks = state.in_view()
    cameras = sorted({camera for track in tracks for camera in track.single})
    length = BAR if width >= WIDE else SHORT_BAR
    names = ("object", *cameras, "fused", "", "entropy", "warning")
    table = object_table(names, (track.id for track in tracks), length)
    for track in tracks:
        label, probability = track.fused
        colour = "red" if track.warning else ("green" if probability > 0.8 else "yellow")
        bar = "█" * round(probability * length)
        singles = []
        for camera in cameras:
            seen = track.single.get(camera)
            wrong = seen is not None and seen[0] != label
            singles.append(
                Text(CLASS_NAMES[seen[0]] if seen else "–", style="bright_red" if wrong else "dim")
            )
        reasons = ", ".join(REASONS.get(reason, reason) for reason in track.warning.split())
        change = "" if not state.changed(track) else "class change" if not reasons else ", class change"
        table.add_row(
            track.id,
            *singles,
            Text(CLASS_NAMES[label], style="bold"),
            Text(f"{bar:<{length}} {probability:4.0%}", style=colour),
            f"{track.entropy:.2f}",
            Text.assemble((reasons, "bold red"), (change, "bold cyan")),
        )
    head = (
        f"{state.seconds:5.1f} s   {state.fused_views} views fused   {len(state.warned)} objects warned of   "
        f"{state.changes} class changes"
    )
    return Group(Text(head, style="bold"), table)
