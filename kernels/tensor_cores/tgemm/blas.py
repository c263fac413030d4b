"""The call of BLAS on tensor cores: ``tgemm(A, B, C, alpha=2.0, beta=1.0)`` in float32, as ``sgemm`` takes it."""

from __future__ import annotations

from typing import Any

from kernels.sgemm.sgemm.blas import launch, product_of
from kernels.tensor_cores.tgemm import ladder
from kernels.tensor_cores.tgemm.launches import FEW_ROWS, PLANS


def tgemm(A: Any, B: Any, C: Any, *, alpha: float = 1.0, beta: float = 0.0, rung: str | None = None) -> None:
    """C = alpha A B + beta C, in place; with beta = 0 whatever C holds is not read.

    Matrices, views and errors are those of :func:`kernels.sgemm.sgemm.blas.sgemm`. ``rung``, if not given, is the one
    for so many rows.
    """
    product = product_of(A, B, C, alpha, beta)
    if product is not None:
        name = rung or ("few_rows" if product.m <= FEW_ROWS else "tuned")
        launch(ladder[name], *PLANS[name], product, {"A": A, "B": B, "C": C})
