"""The exceptions of the package. Their text is for the user: the thing, the value, the way out."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_LONGEST = 500  # characters of a reason; its end says more than its middle
_PLACE_IN_CPP = re.compile(r"/\S+\.(?:cc|h):\d+ .*?\) ")  # of ONNX Runtime, with the function's signature


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


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """The sentence for a name that nobody knows: with the one that was meant, else with all there are."""
    names = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), names, n=1)
    hint = f"did you mean '{names[close[0]]}'?" if close else f"choose one of {', '.join(names.values())}"
    return f"there is no {what} '{name}'; {hint}"


def reason(error: BaseException) -> str:
    """What another library says is wrong, on one line."""
    text = _PLACE_IN_CPP.sub("", " ".join(str(error).split())) or type(error).__name__
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]} ... {text[-half:]}"


def missing_extra(module: str, extra: str) -> str:
    """The sentence for a package that only some need, and that is not installed here."""
    return f'needs {module}, which is not installed here; pip install "lla_fusion_ros[{extra}]"'
