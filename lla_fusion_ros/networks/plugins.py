"""Architectures of the user's own, found by entry point or by the name of a Python module.

A package that is installed offers them in its setup:  entry_points={"lla_fusion_ros.architectures":
["my_resnet = my_networks:resnet_trunk"]}. A module that is only on the path calls `register_architecture`
when it is imported, and is named by the parameter or option `plugins`. What a bundle names is not imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from importlib.metadata import entry_points

from lla_fusion_ros.types.errors import InputError

GROUP = "lla_fusion_ros.architectures"


def import_plugins(modules: Iterable[str]) -> None:
    """Import what the user named; a module that is not there, or fails, is refused."""
    for name in modules:
        try:
            importlib.import_module(name)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise InputError(
                f"plugin '{name}' cannot be imported ({reason}); is its folder in PYTHONPATH?"
            ) from None


def registers_installed(architecture: str) -> bool:
    """Register the architecture of that name that an installed package offers, if one does."""
    from lla_fusion_ros.networks.architectures import register_architecture

    for entry in entry_points(group=GROUP):
        if entry.name == architecture:
            try:
                register_architecture(architecture, entry.load())
            except Exception as error:
                raise InputError(f"plugin '{entry.value}' cannot be loaded: {error}") from None
            return True
    return False
