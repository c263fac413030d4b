"""The convolution on the CPU: one multiply-add of whole volumes for each tap in NumPy, and as PyTorch computes it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from climb.bench.cpu import Method
from climb.bench.problem import Size
from kernels.conv3d.conv3d import problem

SIZES = problem.recorded
#: The float64 sum of a larger cube takes minutes.
CHECKED = tuple(sorted((size for size in SIZES if size["n"] < 256), key=lambda size: size["n"]))


def _numpy(arrays: dict[str, np.ndarray], size: Size) -> Callable[[], np.ndarray]:
    source, weights, n = arrays["source"], arrays["weights"], size["n"]

    def run() -> np.ndarray:
        padded = np.pad(source, size["k"] // 2)
        target, term = np.zeros_like(source), np.empty_like(source)
        for (z, y, x), weight in np.ndenumerate(weights):
            np.multiply(padded[z : z + n, y : y + n, x : x + n], weight, out=term)
            target += term
        return target

    return run


def _torch(arrays: dict[str, np.ndarray], size: Size) -> Callable[[], np.ndarray]:
    import torch

    source, weights = (torch.from_numpy(arrays[name])[None, None] for name in ("source", "weights"))
    return lambda: torch.nn.functional.conv3d(source, weights, padding=size["k"] // 2)[0, 0].numpy()


METHODS = (
    Method("NumPy", "a multiply and an add of whole volumes for each tap, on one core", _numpy, most_flops=5e9),
    Method("PyTorch", "torch.nn.functional.conv3d", _torch),
)
