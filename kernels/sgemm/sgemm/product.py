"""One general product as the kernels see it: extents, leading dimensions, factors; and what a launch is made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from climb.bench.problem import Launch, Size

MAX_GRID_Y = 65535
#: Rows, columns and leading dimensions are ints in the kernels, and a tile may reach past the edge.
MAX_EXTENT = (1 << 31) - 257


@dataclass(frozen=True)
class Product:
    """C = alpha A B + beta C. A is m x k, B k x n, C m x n, row-major; lda, ldb, ldc are the floats from row to row.

    ``width`` is the number of floats per access of the kernels: 4 where every row starts at a multiple of 16 bytes and
    n and k are multiples of 4, else 1.
    """

    m: int
    n: int
    k: int
    lda: int
    ldb: int
    ldc: int
    alpha: float = 1.0
    beta: float = 0.0
    width: int = 1

    @classmethod
    def of(cls, size: Size) -> Product:
        """The plain product of three contiguous matrices that are aligned to 16 bytes."""
        m, n, k = size["m"], size["n"], size["k"]
        return cls(m, n, k, lda=k, ldb=n, ldc=n, width=4 if n % 4 == 0 and k % 4 == 0 else 1)

    @property
    def args(self) -> tuple[Any, ...]:
        """The arguments of a kernel, in the order of BLAS: sizes, alpha, A, lda, B, ldb, beta, C, ldc."""
        m, n, k, lda, ldb, ldc = (np.int32(v) for v in (self.m, self.n, self.k, self.lda, self.ldb, self.ldc))
        return (m, n, k, np.float32(self.alpha), "A", lda, "B", ldb, np.float32(self.beta), "C", ldc)


#: How a rung computes a product: its launches in order, by the product.
Plan = Callable[[Product], tuple[Launch, ...]]
#: Scratch arrays of a rung, ``{name: (shape, dtype)}``, by the product.
Scratch = Callable[[Product], Mapping[str, tuple[tuple[int, ...], str]]]
