"""The layer on the CPU: as a matrix product in NumPy, and as PyTorch computes it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from climb.bench.cpu import Method
from climb.bench.problem import Size
from kernels.conv1d.conv1d.problem import DOUBLE, HEADLINE

SIZES = (*HEADLINE, DOUBLE)


def _numpy(arrays: dict[str, np.ndarray], size: Size) -> Callable[[], np.ndarray]:
    reach = size["k"] // 2
    filters, bias = arrays["weight"].reshape(size["o"], -1), arrays["bias"][:, None]

    def run() -> np.ndarray:
        rows = np.pad(arrays["input"], ((0, 0), (reach, reach)))
        windows = np.lib.stride_tricks.sliding_window_view(rows, size["k"], axis=1)  # (i, l, k)
        return filters @ windows.transpose(0, 2, 1).reshape(-1, size["l"]) + bias

    return run


def _torch(arrays: dict[str, np.ndarray], size: Size) -> Callable[[], np.ndarray]:
    import torch

    source, weight, bias = (torch.from_numpy(arrays[name]) for name in ("input", "weight", "bias"))
    convolve = torch.nn.functional.conv1d
    return lambda: convolve(source[None], weight, bias, padding=size["k"] // 2)[0].numpy()


METHODS = (
    Method("NumPy", "sliding windows, then filters @ windows", _numpy),
    Method("PyTorch", "torch.nn.functional.conv1d", _torch),
)
