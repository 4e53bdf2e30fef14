"""Where the data sets are, for the tests that need them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .processes import REPOSITORY


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The data sets: $LLA_FUSION_DATA, else `shared/data` beside the repository; skips without."""
    root = Path(os.environ.get("LLA_FUSION_DATA") or REPOSITORY.parent / "shared" / "data")
    if not root.is_dir():
        pytest.skip(f"data sets not found in {root}; set LLA_FUSION_DATA to their folder")
    return root
