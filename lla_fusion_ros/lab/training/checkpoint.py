"""Checkpoints: what a killed training run needs to go on as if nothing had happened."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import torch

from lla_fusion_ros.lab.training.training_settings import TrainSettings
from lla_fusion_ros.types.errors import InputError


class CheckpointFolder:
    """One file per group of members, replaced after every epoch; tied to the settings and the data."""

    def __init__(self, folder: Path, settings: TrainSettings, digest: str) -> None:
        self.folder = folder
        told = json.dumps({"settings": settings.as_dict(), "data": digest}, sort_keys=True)
        self._fingerprint = hashlib.sha256(told.encode()).hexdigest()

    def save(self, group: int, state: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path(group)
        part = path.with_suffix(".part")
        torch.save({**state, "fingerprint": self._fingerprint}, part)
        os.replace(part, path)

    def load(self, group: int) -> dict[str, Any] | None:
        """The last state of a group, or None; InputError where it belongs to another run."""
        path = self._path(group)
        if not path.exists():
            return None
        try:
            state = torch.load(path, weights_only=True)  # never runs code
        except Exception as error:  # torch raises many kinds for a damaged file
            raise InputError(
                f"checkpoint '{path}' cannot be read ({error}); delete it to start again"
            ) from None
        if state.pop("fingerprint", None) != self._fingerprint:
            raise InputError(
                f"checkpoint '{path}' was made with other settings or data; "
                "use the same settings, or start without --resume"
            )
        return state

    def clear(self) -> None:
        """Remove the checkpoints, and the folder if nothing else is in it."""
        for path in self.folder.glob("group-*"):
            path.unlink()
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _path(self, group: int) -> Path:
        return self.folder / f"group-{group}.pt"
