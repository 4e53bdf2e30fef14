"""Every fuser gives what it has always given: 312 views of sign-world tracks against recorded distributions.

The views are stored rounded, so that every machine reads the same numbers. Rules of the
paper and plain baselines hold to 1e-9; fusers with fitted numbers hold to 1e-6.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lla_fusion_ros.bundle import load_bundle
from lla_fusion_ros.views import Views
from support.processes import REPOSITORY

GOLDEN = np.load(Path(__file__).parent / "fused_pmfs.npz")
LENGTHS = (1, 4, 12)
EXACT = {"ella", "ella_mixture", "log_linear", "mc_product", "mean_pmf", "product", "wls"}
NAMES = sorted(name[len("pmf_") :] for name in GOLDEN.files if name.startswith("pmf_"))


@pytest.fixture(scope="module")
def bundle():
    return load_bundle(REPOSITORY / "models" / "signworld.safetensors")


@pytest.mark.parametrize("name", NAMES)
def test_a_fuser_gives_the_recorded_distributions(bundle, name):
    logits, features = GOLDEN["logits"].astype(np.float32), GOLDEN["features"].astype(np.float32)
    fuser = bundle.fuser(name)
    state = fuser.initial(len(logits))
    for step in range(logits.shape[1]):
        state = fuser.update(state, Views(logits[:, step], features[:, step]))
        if step + 1 in LENGTHS:
            expected = GOLDEN[f"pmf_{name}"][:, LENGTHS.index(step + 1)]
            tolerance = 1e-9 if name in EXACT else 1e-6
            np.testing.assert_allclose(fuser.predict(state), expected, rtol=0, atol=tolerance)
