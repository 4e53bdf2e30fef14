"""Time the forms of phi^T A_m^-1 phi, of which posterior/torch_variance.py uses the fastest.

Example: OMP_NUM_THREADS=1 python tools/compare_variance_forms.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch

from lla_fusion_ros.posterior.ensemble import EnsemblePosterior
from lla_fusion_ros.posterior.torch_variance import TorchVariance

NETWORKS = 5


def fastest(call: Callable[[], object], repeats: int = 15) -> float:
    """Milliseconds of the fastest of several calls."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def forms(classes: int, size: int, crops: int) -> dict[str, Callable[[], object]]:
    rng = np.random.default_rng(0)
    inverse = np.tril(0.1 * rng.normal(size=(NETWORKS, classes, size, size)), -1) + np.eye(size)  # L_m^-1
    phi = rng.normal(size=(NETWORKS, crops, size))
    rows, columns = np.tril_indices(size)
    double = np.where(rows == columns, 1.0, 2.0)
    precision = (inverse.swapaxes(-1, -2) @ inverse)[..., rows, columns] * double  # [networks, M, packed]
    flat = np.ascontiguousarray(inverse.reshape(NETWORKS, -1, size).swapaxes(1, 2))
    phi32, flat32, packed32 = (
        torch.tensor(a, dtype=torch.float32) for a in (phi, flat, precision.swapaxes(1, 2).copy())
    )
    index = torch.tensor(rows * size + columns)

    def packed() -> torch.Tensor:
        outer = (phi32.unsqueeze(-1) * phi32.unsqueeze(-2)).flatten(2)[..., index]
        return torch.bmm(outer, packed32)

    def whitened() -> torch.Tensor:
        return torch.bmm(phi32, flat32).view(NETWORKS, crops, classes, -1).square().sum(-1)

    posterior = EnsemblePosterior(np.linalg.inv(inverse), prior_precision=1.0)
    module = TorchVariance(posterior)
    views = phi32.transpose(0, 1)

    def whitened_float64() -> np.ndarray:
        prints = np.matmul(phi, flat).reshape(NETWORKS, crops, classes, size)
        return np.einsum("cnmd,cnmd->cnm", prints, prints)

    return {
        "packed, float32": packed,
        "whitened, float32": whitened,
        "as used: row blocks, classes innermost": lambda: module(views),
        "whitened, float64 numpy": whitened_float64,
    }


def main() -> None:
    torch.set_num_threads(1)
    for classes, width in ((10, 84), (43, 84), (43, 256)):
        timed = [{name: fastest(f) for name, f in forms(classes, width + 1, n).items()} for n in (1, 16, 64)]
        for name in timed[0]:
            print(
                f"{classes:3d} x {width:3d}  {name:40s}", " / ".join(f"{t[name]:7.2f}" for t in timed), "ms"
            )


if __name__ == "__main__":
    main()
