"""The fusers: many views of one object in, one class distribution out.

One fuser is one file: state, formula, fit. `base` says what a fuser is, `measure` what a view tells about
itself, `learn` fits by gradient, `along` fuses whole tracks. Imports `types` and `posterior`.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from inspect import isclass
from pkgutil import iter_modules

from lla_fusion_ros.fusion.base import Fuser, Values
from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.types.errors import InputError, unknown_name


@lru_cache(maxsize=1)
def fusers() -> dict[str, type[Fuser]]:
    """Every fuser by name: the classes with a `name` in the files of this folder."""
    found: dict[str, type[Fuser]] = {}
    for info in iter_modules(__path__):
        module = import_module(f"{__name__}.{info.name}")
        for thing in vars(module).values():
            if isclass(thing) and issubclass(thing, Fuser) and thing.__module__ == module.__name__:
                name = getattr(thing, "name", None)
                if name is not None:
                    found[name] = thing
    return dict(sorted(found.items()))


def make_fuser(
    name: str, posterior: EnsemblePosterior, values: Values | None = None, window: int = 30
) -> Fuser:
    """The fuser of that name; `values` are its fitted numbers, `window` the views a windowed fuser keeps."""
    kinds = fusers()
    if name not in kinds:
        raise InputError(unknown_name("fuser", name, kinds))
    return kinds[name](posterior, values, window)
