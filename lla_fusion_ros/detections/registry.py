"""Which adapter reads which message type: every file in `adapters/` has an ADAPTER and is found by itself."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from lla_fusion_ros.detections import adapters
from lla_fusion_ros.detections.adapter import Adapter


def adapter_for(type_name: str) -> Adapter | None:
    """The adapter of `package/Type` or `package/msg/Type`, or None where the type is not known."""
    return known_types().get(type_name.replace("/msg/", "/"))


@cache
def known_types() -> dict[str, Adapter]:
    """Every message type that can be read, as `package/Type`."""
    found: dict[str, Adapter] = {}
    for module in sorted(pkgutil.iter_modules(adapters.__path__), key=lambda module: module.name):
        adapter: Adapter = importlib.import_module(f"{adapters.__name__}.{module.name}").ADAPTER
        found.update(dict.fromkeys(adapter.types, adapter))
    return found
