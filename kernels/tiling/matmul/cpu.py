"""The product on the CPU, by the BLAS of NumPy and of PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from climb.bench.cpu import Method
from climb.bench.problem import Size
from kernels.tiling.matmul import problem

SIZES = problem.headline


def _numpy(arrays: dict[str, np.ndarray], size: Size) -> Callable[[], np.ndarray]:
    return lambda: arrays["A"] @ arrays["B"]


def _torch(arrays: dict[str, np.ndarray], size: Size) -> Callable[[], np.ndarray]:
    import torch

    a, b = (torch.from_numpy(arrays[name]) for name in ("A", "B"))
    return lambda: (a @ b).numpy()


METHODS = (Method("NumPy", "A @ B", _numpy), Method("PyTorch", "A @ B", _torch))
