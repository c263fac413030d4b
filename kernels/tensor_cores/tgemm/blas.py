"""The call of BLAS on tensor cores: ``tgemm(A, B, C, alpha=2.0, beta=1.0)`` in float32, as ``sgemm`` takes it."""

from __future__ import annotations

from typing import Any

from kernels.sgemm.sgemm.blas import launch, product_of
from kernels.sgemm.sgemm.product import Product
from kernels.tensor_cores.tgemm import ladder
from kernels.tensor_cores.tgemm.few import FEW_ROWS, SHARES_COLUMNS
from kernels.tensor_cores.tgemm.launches import parts_of_k
from kernels.tensor_cores.tgemm.plans import PLANS

#: Of k, up to which ``small_tiles`` keeps whole columns of B in registers.
LONGEST = 1024


def tgemm(A: Any, B: Any, C: Any, *, alpha: float = 1.0, beta: float = 0.0, rung: str | None = None) -> None:
    """C = alpha A B + beta C, in place; with beta = 0 whatever C holds is not read.

    Matrices, views and errors are those of :func:`kernels.sgemm.sgemm.blas.sgemm`. Without ``rung``, :func:`best_rung`
    chooses.
    """
    product = product_of(A, B, C, alpha, beta)
    if product is not None:
        name = rung or best_rung(product)
        launch(ladder[name], *PLANS[name], product, {"A": A, "B": B, "C": C})


def best_rung(product: Product) -> str:
    """The rung for a product: those with large tiles where these are enough for all SMs.

    For few rows the wide tiles of `shares` are faster at every recorded size; fewer columns than one has were not
    recorded.
    """
    if product.m <= 2 * FEW_ROWS:
        return "shares" if product.n >= SHARES_COLUMNS else "few_rows"
    return "small_tiles" if parts_of_k(product) > 1 and product.k <= LONGEST else "one_launch"
