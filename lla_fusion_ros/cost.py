"""What a fuser would cost in memory and time, known before anything is allocated."""

from __future__ import annotations

from math import prod

from lla_fusion_ros.errors import InputError
from lla_fusion_ros.fusion.base import Fuser
from lla_fusion_ros.settings import FusionSettings

MOST_BYTES = 3 * 2**30  # state of all tracks; up to twice that for a moment while the arrays grow
MOST_MILLISECONDS = 5.0  # of one core for one view of one track
# Measured on a desktop core with `wls` of the shipped models: each view reads and writes the whole state.
# With more views than features some repeat others, and a full window is then factored again with every view.
_MILLISECONDS_PER_NUMBER = 13e-6
_MILLISECONDS_PER_NUMBER_AND_VIEW = 1.7e-6


def bytes_per_track(fuser: Fuser) -> int:
    """The state of one track; no memory is taken to find out."""
    state = fuser.initial(0)
    arrays = [getattr(state, name) for name in state.__match_args__]
    return sum(prod(array.shape[1:]) * array.itemsize for array in arrays)


def check_cost(fuser: Fuser, settings: FusionSettings) -> None:
    """Refuse, with a sentence, what would not fit into memory or would take too long for each frame."""
    each = bytes_per_track(fuser)
    what = f"fuser '{fuser.name}' with 'window' {settings.window}"
    if each * settings.capacity > MOST_BYTES:
        raise InputError(
            f"{what} keeps {each / 1e6:.3g} MB for each of 'capacity' {settings.capacity} tracks, "
            f"{each * settings.capacity / 1e9:.3g} GB in all, and {MOST_BYTES / 1e9:.3g} GB is the most: "
            f"set 'capacity' to at most {MOST_BYTES // each}, or a smaller 'window'"
        )
    numbers = each / 8
    milliseconds = numbers * _MILLISECONDS_PER_NUMBER
    if settings.window > fuser.posterior.features:
        milliseconds += numbers * settings.window * _MILLISECONDS_PER_NUMBER_AND_VIEW
    if milliseconds > MOST_MILLISECONDS:
        raise InputError(
            f"{what} takes about {milliseconds:.2g} ms for each view of each track, and "
            f"{MOST_MILLISECONDS:g} ms is the most: set a smaller 'window'"
        )
