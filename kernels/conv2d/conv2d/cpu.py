"""The convolution on the CPU: one multiply-add of whole images for each tap in NumPy, and as PyTorch computes it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from climb.bench.cpu import Method
from climb.bench.problem import Size
from kernels.conv2d.conv2d import problem

SIZES = problem.headline
#: The float64 sum of a larger filter takes half a minute and more.
CHECKED = SIZES[:1]


def _numpy(arrays: dict[str, np.ndarray], size: Size) -> Callable[[], np.ndarray]:
    image, weights = arrays["image"], arrays["filter"]
    down, across = size["k"] // 2, size["k_cols"] // 2

    def run() -> np.ndarray:
        padded = np.pad(image, ((down, down), (across, across)))
        result, term = np.zeros_like(image), np.empty_like(image)
        for (y, x), weight in np.ndenumerate(weights):
            np.multiply(padded[y : y + size["rows"], x : x + size["cols"]], weight, out=term)
            result += term
        return result

    return run


def _torch(arrays: dict[str, np.ndarray], size: Size) -> Callable[[], np.ndarray]:
    import torch

    image, weights = (torch.from_numpy(arrays[name])[None, None] for name in ("image", "filter"))
    padding = size["k"] // 2, size["k_cols"] // 2
    return lambda: torch.nn.functional.conv2d(image, weights, padding=padding)[0, 0].numpy()


METHODS = (
    Method("NumPy", "a multiply and an add of whole images for each tap, on one core", _numpy, most_flops=4e9),
    Method("PyTorch", "torch.nn.functional.conv2d", _torch),
)
