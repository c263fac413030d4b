"""cuSPARSELt, the library of 2:4 sparse products, as PyTorch calls it, and cuBLAS on the same matrix with its zeros.

``torch.sparse.to_sparse_semi_structured`` and ``torch.mm`` run the algorithm that cuSPARSELt proposes; here its search
(``cusparseLtMatmulSearch``) is a candidate too, and so is a second factor stored by columns.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import Any

from climb.bench.libraries.choosing import Prepared, fastest
from climb.bench.libraries.cublas import cublas
from climb.bench.libraries.description import Description, describe, dotted
from climb.bench.problem import Peer, PeerUnavailable, Size

#: Cycles that the GPU waits before a timed launch: longer than the CPU needs to queue it.
_WAIT = 5_000_000
#: Makes the matrix with its zeros from values and metadata: NumPy arrays.
Expand = Callable[[Any, Any], Any]


def _half_tolerance(size: Size) -> float:
    """Sums are rounded to 11 bits when they are written: by at most 2^-11 of the largest."""
    return 2.0**-11


def peers(expand: Expand) -> tuple[Peer, ...]:
    """Peers of a product C = A B of halves, where A comes as ``values`` and ``metadata``, and C is float32."""
    return (
        Peer(
            "cuSPARSELt fp16",
            _sparse(expand),
            _described("torch._cslt_sparse_mm, C in fp16"),
            tolerance=_half_tolerance,
        ),
        Peer(
            "cuBLAS fp16 dense",
            _dense(expand, False),
            cublas("torch.mm, with the zeros, C in fp16", "fp16"),
            tolerance=_half_tolerance,
        ),
        Peer(
            "cuBLAS fp16 dense, fp32 out",
            _dense(expand, True),
            cublas("torch.mm, with the zeros, C in fp32", "fp16"),
        ),
    )


def _described(algorithm: str) -> Callable[[], Description]:
    def found() -> Description:
        import torch

        if not torch.backends.cusparselt.is_available():
            raise PeerUnavailable("this PyTorch is built without cuSPARSELt")
        return describe("cuSPARSELt", dotted(torch.backends.cusparselt.version(), 1000, 100, 1), algorithm, "fp16")

    return found


def _tensors(expand: Expand, arrays: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return A with its zeros, B and C, as PyTorch's tensors on the GPU."""
    import cupy
    import torch

    dense = cupy.asarray(expand(arrays["values"].get(), arrays["metadata"].get()))
    return tuple(torch.from_dlpack(each) for each in (dense, arrays["B"], arrays["C"]))


def _sparse(expand: Expand) -> Callable[[dict[str, Any], Size], Prepared]:
    def prepare(arrays: dict[str, Any], size: Size) -> Prepared:
        import torch

        if not torch.backends.cusparselt.is_available():
            raise PeerUnavailable("this PyTorch is built without cuSPARSELt")
        a, b, c = _tensors(expand, arrays)
        compressed = torch._cslt_compress(a)
        return fastest(_candidates(compressed, b, c), _seconds)

    return prepare


def _seconds(enqueue: Callable[[], None], launches: int = 5) -> float:
    """Return the median GPU time of a launch, with a cold cache.

    PyTorch makes cuSPARSELt plan every call, which takes the CPU longer than the product takes the GPU. So the GPU is
    kept waiting until the launch is queued.
    """
    import torch

    flush, times = torch.empty(512 << 20, dtype=torch.uint8, device="cuda"), []
    for _ in range(launches):
        flush.zero_()
        torch.cuda._sleep(_WAIT)
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        enqueue()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) * 1e-3)
    return statistics.median(times)


def _candidates(compressed: Any, b: Any, c: Any) -> Iterator[Callable[[], Prepared]]:
    import torch

    for stored, factor in (("rows", b), ("columns", b.t().contiguous().t())):
        for searched in (False, True):

            def candidate(factor: Any = factor, stored: str = stored, searched: bool = searched) -> Prepared:
                number = torch._cslt_sparse_mm_search(compressed, factor) if searched else 0
                said = f"algorithm {number}, found by its search" if searched else "its default algorithm"
                result: list[Any] = [None]

                def enqueue() -> None:
                    result[0] = torch._cslt_sparse_mm(compressed, factor, alg_id=number)

                return Prepared(
                    enqueue, {"choice": f"{said}, B stored by {stored}"}, deliver=lambda: c.copy_(result[0])
                )

            yield candidate


def _dense(expand: Expand, wide: bool) -> Callable[[dict[str, Any], Size], Prepared]:
    def prepare(arrays: dict[str, Any], size: Size) -> Prepared:
        import torch

        a, b, c = _tensors(expand, arrays)
        if wide:
            return Prepared(lambda: torch.mm(a, b, out_dtype=torch.float32, out=c))
        out = torch.empty(c.shape, dtype=torch.float16, device=c.device)
        return Prepared(lambda: torch.mm(a, b, out=out), deliver=lambda: c.copy_(out))

    return prepare
