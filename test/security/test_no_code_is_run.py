"""Model files, caches and checkpoints are data: nothing that is read is ever run.

`make lint` refuses pickle, eval, exec, unsafe YAML and shells in all sources (the S rules of pyproject.toml).
"""

from __future__ import annotations

import os
import pickle
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch

from lla_fusion_ros.lab.evaluation import cached_views as outputs
from lla_fusion_ros.lab.training.train import CheckpointFolder
from lla_fusion_ros.lab.training.training_settings import TrainSettings
from lla_fusion_ros.types.errors import InputError
from lla_fusion_ros.types.track_views import TrackViews


class Harm:
    """Unpickled, it leaves a folder behind."""

    def __init__(self, mark: Path) -> None:
        self.mark = str(mark)

    def __reduce__(self):
        return os.mkdir, (self.mark,)


def test_a_cache_that_holds_a_pickle_is_made_again_and_not_run(tmp_path) -> None:
    mark, file = tmp_path / "harm", tmp_path / "views.npz"
    objects = np.array([Harm(mark)], dtype=object)
    np.savez(file, allow_pickle=True, **{field.name: objects for field in fields(TrackViews)})
    assert outputs._load(file) is None
    file.write_bytes(pickle.dumps(Harm(mark)))
    assert outputs._load(file) is None
    assert not mark.exists()


def test_a_checkpoint_that_holds_code_is_refused_and_not_run(tmp_path) -> None:
    mark = tmp_path / "harm"
    folder = CheckpointFolder(tmp_path / "checkpoints", TrainSettings({"name": "road", "size": 32}), "digest")
    folder.save(0, {"epoch": 1})
    assert folder.load(0) == {"epoch": 1}
    torch.save({"epoch": Harm(mark)}, tmp_path / "checkpoints" / "group-0.pt")
    with pytest.raises(InputError, match="cannot be read"):
        folder.load(0)
    assert not mark.exists()
