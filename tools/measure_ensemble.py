"""Time the ways to run several networks at once; the table in networks/ensemble.py comes from here.

Example: OMP_NUM_THREADS=1 python tools/measure_ensemble.py
"""

from __future__ import annotations

import time

import torch
from torch.func import functional_call, stack_module_state, vmap

from lla_fusion_ros.networks import Ensemble, SplitNetwork, build_network
from lla_fusion_ros.networks.fold import folded

NETWORKS, REPEATS = 5, 15
ARCHITECTURES = (
    {"name": "road", "size": 32, "channels": [16, 32, 64], "width": 48},
    {"name": "road", "size": 32, "channels": [24, 48, 96, 96], "width": 64},
    {"name": "road", "size": 40, "channels": [24, 48, 96, 96], "width": 64},
)


class Vmapped(torch.nn.Module):
    """The same networks through torch.vmap, which this package does not use."""

    def __init__(self, members: list[SplitNetwork]) -> None:
        super().__init__()
        members = [folded(member) for member in members]
        self.base = members[0]
        self.stacked = stack_module_state(members)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        parameters, buffers = self.stacked
        return vmap(lambda p, b: functional_call(self.base, (p, b), (images,)), out_dims=1)(
            parameters, buffers
        )


def main() -> None:
    torch.set_num_threads(1)
    print("ms per call, fastest of", REPEATS)
    for architecture in ARCHITECTURES:
        members = [build_network(architecture, 43).eval() for _ in range(NETWORKS)]
        ways = {
            "loop": Ensemble(members, grouped=False),
            "grouped": Ensemble(members, grouped=True),
            "8 bits": Ensemble(members, eight_bits=True),
            "vmap": Vmapped(members),
        }
        for crops in (1, 20, 120):
            size = int(str(architecture["size"]))
            images = torch.rand(crops, 3, size, size).to(memory_format=torch.channels_last)
            fastest = {name: float("inf") for name in ways}
            with torch.inference_mode():
                for _ in range(REPEATS):
                    for name, way in ways.items():  # interleaved: all suffer the same neighbours
                        start = time.perf_counter()
                        way(images)
                        fastest[name] = min(fastest[name], 1e3 * (time.perf_counter() - start))
            row = "  ".join(f"{name} {value:7.2f}" for name, value in fastest.items())
            print(f"{architecture['channels']} at {size} px, {crops:3d} crops: {row}")


if __name__ == "__main__":
    main()
