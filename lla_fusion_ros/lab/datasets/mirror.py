"""Which sign the mirror image of a sign shows: training may mirror those, which doubles the rare ones."""

from __future__ import annotations

from collections.abc import Iterable


def mirror_images(
    classes: int, symmetric: Iterable[int], pairs: Iterable[tuple[int, int]]
) -> tuple[int | None, ...]:
    """For each class the class that its mirror image shows, None where it shows none.

    Args:
        symmetric: classes that look the same in a mirror.
        pairs: classes of which one is the mirror image of the other.
    """
    shown: dict[int, int] = {label: label for label in symmetric}
    for left, right in pairs:
        shown |= {left: right, right: left}
    return tuple(shown.get(label) for label in range(classes))
