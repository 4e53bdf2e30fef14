"""The exceptions of the package. Their text is for the user: the thing, the value, the way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LlaFusionError(Exception):
    """Anything this package refuses; the command line prints it as one sentence, without a traceback."""


class InputError(LlaFusionError, ValueError):
    """Data handed in does not fit: wrong shape, not finite, out of range."""


class BundleError(LlaFusionError):
    """A model file is truncated, altered, foreign or of another version."""


class DatasetError(LlaFusionError):
    """A data set folder is missing or incomplete."""


class BagError(LlaFusionError):
    """A bag cannot be read, written or fused."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The way out where a name is unknown: the nearest known one, or all of them."""
    names = list(known)
    close = difflib.get_close_matches(word, names, n=1)
    return f"did you mean '{close[0]}'?" if close else f"choose from {', '.join(names)}"
