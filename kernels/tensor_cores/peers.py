"""Peers of the same products: the vendor's library and other compilers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from climb.bench.libraries import cublas, cublaslt, cutlass, triton_peers
from climb.bench.problem import Peer, Size

Multiply = Callable[..., Callable[[], None]]
_CHOSEN, _TIMED = "torch.matmul, cuBLAS's own choice", "cublasLtMatmul, heuristics timed"


def _matrices(multiply: Multiply) -> Callable[[dict[str, Any], Size], Callable[[], None]]:
    """A peer's ``prepare`` from a function of the three matrices."""
    return lambda arrays, size: multiply(*(arrays[name] for name in ("A", "B", "C")))


def _cublaslt(precision: str) -> Multiply:
    return lambda a, b, c: cublaslt.product(*(cublaslt.matrix(array) for array in (a, b, c)), precision)


def _compiled(precision: str, triton: str) -> tuple[Peer, ...]:
    """Triton, which compiles Python, and CUTLASS's templates; ``triton`` is its name of the precision."""
    return (
        Peer(
            f"Triton {precision}",
            _matrices(lambda a, b, c: triton_peers.product(a, b, c, triton)),
            triton_peers.triton("matrix product", precision),
            swept=False,
        ),
        Peer(
            f"CUTLASS {precision}",
            _matrices(lambda a, b, c: cutlass.product(a, b, c, precision)),
            cutlass.cutlass("GEMM, mma.sync", precision),
            swept=False,
        ),
    )


def of_halves() -> tuple[Peer, ...]:
    """Peers of float16 factors with a float32 result."""
    return (
        Peer("cuBLAS fp16", cublas.product_of_halves, cublas.cublas(_CHOSEN, "fp16, sums fp32")),
        Peer("cuBLASLt fp16", _matrices(_cublaslt("fp16")), cublas.cublas(_TIMED, "fp16, sums fp32")),
        *_compiled("fp16", "ieee"),
    )


def of_tf32() -> tuple[Peer, ...]:
    """Peers of float32 factors that are rounded or cut to TF32."""
    return (
        Peer("cuBLAS TF32", cublas.product(tf32=True), cublas.cublas(_CHOSEN, "TF32")),
        Peer("cuBLASLt TF32", _matrices(_cublaslt("TF32")), cublas.cublas(_TIMED, "TF32")),
        *_compiled("TF32", "tf32"),
        Peer("cuBLAS fp32", cublas.product(tf32=False), cublas.cublas(_CHOSEN, "fp32"), swept=False),
    )
