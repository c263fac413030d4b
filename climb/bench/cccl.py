"""CUB through the package ``cuda-cccl``, compiled for the argument types as in a C++ program.

Everything here needs a GPU and imports its library when called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def describe(algorithm: str, precision: str) -> Callable[[], dict[str, str]]:
    """A peer's ``describe`` for CUB, with the version of the package that contains it."""

    def library() -> dict[str, str]:
        from importlib.metadata import version

        return {
            "name": "CUB",
            "version": f"cuda-cccl {version('cuda-cccl')}",
            "algorithm": algorithm,
            "precision": precision,
        }

    return library


def histogram(values: Any, counts: Any) -> Callable[[], None]:
    """A function that counts each of ``0 ... counts.size - 1`` among ``values``, both arrays on the GPU.

    It calls CUB's ``DeviceHistogram::HistogramEven`` with one bin per integer; its storage is allocated now.
    """
    import cupy
    from cuda.compute import make_histogram_even

    how: dict[str, Any] = {
        "d_samples": values,
        "d_histogram": counts,
        "h_num_output_levels": np.array([counts.size + 1], dtype=np.int32),
        "h_lower_level": np.array([0], dtype=np.int32),
        "h_upper_level": np.array([counts.size], dtype=np.int32),
        "num_samples": values.size,
    }
    count = make_histogram_even(**how)
    storage = cupy.empty(max(1, count(temp_storage=None, **how)), dtype=cupy.uint8)

    def enqueue() -> None:
        count(temp_storage=storage, stream=cupy.cuda.get_current_stream(), **how)

    return enqueue
