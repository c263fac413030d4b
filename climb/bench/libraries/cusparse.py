"""cuSPARSE's products of a CSR matrix, as PyTorch calls them, and cuBLAS on the same matrix with its zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from climb.bench.libraries.choosing import Prepared
from climb.bench.libraries.cublas import cublas, matmul
from climb.bench.libraries.description import Description, describe, dotted
from climb.bench.problem import Peer, Size

Prepare = Callable[[dict[str, Any], Size], Callable[[], None]]


def vector_peers() -> tuple[Peer, ...]:
    """Peers of y = A x, A as ``offsets``, ``columns`` and ``values``."""
    return (
        Peer("cuSPARSE", _sparse("x", "y"), _described("torch.mv on a CSR tensor", "fp32")),
        Peer("cuBLAS dense", _dense("x", "y", False), cublas("torch.mv, with the zeros", "fp32")),
    )


def matrix_peers() -> tuple[Peer, ...]:
    """Peers of C = A B, A as ``offsets``, ``columns`` and ``values``."""
    return (
        Peer("cuSPARSE", _sparse("B", "C"), _described("torch.mm on a CSR tensor", "fp32")),
        Peer("cuBLAS fp32 dense", _dense("B", "C", False), cublas("torch.mm, with the zeros", "fp32")),
        # TF32 rounds each factor to 11 bits: a relative error of 2^-11 for each product, and they average out.
        Peer(
            "cuBLAS TF32 dense",
            _dense("B", "C", True),
            cublas("torch.mm, with the zeros", "TF32"),
            tolerance=lambda size: 2.0**-10,
        ),
    )


def _described(algorithm: str, precision: str) -> Callable[[], Description]:
    def found() -> Description:
        import torch  # noqa: F401 - loads the cuSPARSE that is described
        from cupy_backends.cuda.libs import cusparse

        version = cusparse.getVersion(cusparse.create())
        return describe("cuSPARSE", dotted(version, 1000, 100, 1), algorithm, precision)

    return found


def _csr(arrays: dict[str, Any], size: Size) -> Any:
    """The matrix as a CSR tensor of PyTorch, on the arrays themselves."""
    import torch

    parts = (torch.from_dlpack(arrays[name]) for name in ("offsets", "columns", "values"))
    return torch.sparse_csr_tensor(*parts, size=(size["m"], size["k"]), check_invariants=False)


def _sparse(right: str, result: str) -> Prepare:
    def prepare(arrays: dict[str, Any], size: Size) -> Prepared:
        import torch

        matrix = _csr(arrays, size)
        factor, out = (torch.from_dlpack(arrays[name]) for name in (right, result))
        multiply = torch.mv if factor.ndim == 1 else torch.mm
        return Prepared(lambda: multiply(matrix, factor, out=out))

    return prepare


def _dense(right: str, result: str, tf32: bool) -> Prepare:
    def prepare(arrays: dict[str, Any], size: Size) -> Callable[[], None]:
        import torch

        matrix = _csr(arrays, size).to_dense()
        factor, out = (torch.from_dlpack(arrays[name]) for name in (right, result))
        return matmul(matrix, factor, out, tf32)

    return prepare
