"""What `lla-fusion demo` shows while the nodes run: every track in view, on a terminal as a live table."""

from __future__ import annotations

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lla_fusion_ros.demo.live import LiveState
from lla_fusion_ros.signworld import CLASS_NAMES

BAR = 18  # characters
REASONS = {
    "out_of_distribution": "unlike anything trained on",
    "identity_switch": "identity switch",
    "camera_disagreement": "cameras disagree",
    "cannot_tell": "cannot tell: bad pictures",
}


class DemoScreen:
    """A live table on a terminal; plain lines elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self._console = Console(stderr=quiet)
        self._live = Live(console=self._console, refresh_per_second=8, transient=True)
        self._plain_at = -5.0

    def __enter__(self) -> DemoScreen:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def tell(self, text: str) -> None:
        self._console.print(Text.assemble(("·", "bold cyan"), f" {text}"), highlight=False)

    def watch(self, state: LiveState) -> None:
        if self._console.is_terminal:
            self._live.update(_table(state))
        elif state.seconds >= self._plain_at + 5:
            self._plain_at = state.seconds
            self._console.print(
                f"  {state.seconds:4.0f} s  {state.fused_views} views fused, "
                f"{len(state.in_view())} tracks in view, {len(state.warned)} warned of, "
                f"{state.changes} class changes so far"
            )


def _table(state: LiveState) -> Group:
    tracks = state.in_view()
    cameras = sorted({camera for track in tracks for camera in track.single})
    table = Table(expand=False, header_style="bold")
    for column in ("track", *cameras, "fused", "", "entropy", "warning"):
        table.add_column(column)
    for track in tracks:
        label, probability = track.fused
        colour = "red" if track.warning else ("green" if probability > 0.8 else "yellow")
        bar = "█" * round(probability * BAR)
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
            Text(f"{bar:<{BAR}} {probability:4.0%}", style=colour),
            f"{track.entropy:.2f}",
            Text.assemble((reasons, "bold red"), (change, "bold cyan")),
        )
    head = (
        f"{state.seconds:5.1f} s   {state.fused_views} views fused   {len(state.warned)} tracks warned of   "
        f"{state.changes} class changes"
    )
    return Group(Text(head, style="bold"), table)
