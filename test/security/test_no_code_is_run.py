"""Model files, caches, checkpoints and settings are data: nothing that is read is ever run."""

from __future__ import annotations

import ast
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

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = sorted(
    path
    for folder in ("lla_fusion_ros", "bench", "tools", "launch")
    for path in (REPOSITORY / folder).rglob("*.py")
)
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "yaml.load", "yaml.unsafe_load", "yaml.full_load"}
FORBIDDEN_CALLS |= {"os.system", "os.popen", "torch.jit.load", "torch.hub.load", "torch.package"}


class Harm:
    """Unpickled, it leaves a folder behind."""

    def __init__(self, mark: Path) -> None:
        self.mark = str(mark)

    def __reduce__(self):
        return os.mkdir, (self.mark,)


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def faults(source: str) -> list[str]:
    """What a file does that could run what it reads."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = (
                [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            )
            found += [f"imports {name}" for name in names if name.partition(".")[0] in FORBIDDEN_MODULES]
        if not isinstance(node, ast.Call):
            continue
        name = dotted(node.func)
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if name in FORBIDDEN_CALLS:
            found.append(f"calls {name}")
        if name == "torch.load" and not _is(given.get("weights_only"), True):
            found.append("calls torch.load without weights_only=True")
        if name in ("np.load", "numpy.load") and not _is(given.get("allow_pickle"), False):
            found.append("calls np.load without allow_pickle=False")
        if _is(given.get("shell"), True):
            found.append(f"calls {name} with a shell")
        if _is(given.get("allow_pickle"), True):
            found.append(f"calls {name} with allow_pickle=True")
    return found


def _is(node: ast.expr | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def test_no_source_file_can_run_what_it_reads() -> None:
    found = {str(path): faults(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert len(found) > 200 and {path: what for path, what in found.items() if what} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from joblib import load",
        "import torch\ntorch.load('x')",
        "import torch\ntorch.load('x', weights_only=False)",
        "import numpy as np\nnp.load('x')",
        "import numpy as np\nnp.load('x', allow_pickle=True)",
        "import yaml\nyaml.load('x', Loader=yaml.Loader)",
        "eval('1')",
        "import subprocess\nsubprocess.run('ls', shell=True)",
    ],
)
def test_the_check_itself_sees_what_it_should(source) -> None:
    assert faults(source)


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
