"""General matrix product C = alpha A B + beta C in float32, row-major, any leading dimensions: matmul's upper half."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from climb.bench.ladder import Ladder
from climb.bench.libraries import cublas, cublaslt, cutlass, triton_peers
from climb.bench.problem import Peer, Rung, Size
from kernels.common.matrix_product import product_problem, rounding_tolerance
from kernels.sgemm.sgemm.product import MAX_EXTENT, MAX_GRID_Y, Product
from kernels.sgemm.sgemm.rungs import PLANS, SCRATCH, SQUARE, counted_slices

problem = product_problem(
    "sgemm",
    "General matrix product, float32",
    tolerance=rounding_tolerance,
    sweep=(
        *({"m": edge, "n": edge, "k": edge} for edge in (1024, 2048, 8192)),
        {"m": 32, "n": 4096, "k": 4096},
        {"m": 512, "n": 11008, "k": 4096},
        {"m": 16384, "n": 768, "k": 768},
    ),
    check=(
        {"m": 0, "n": 3, "k": 4},
        {"m": 5, "n": 3, "k": 0},
        {"m": 1, "n": 1, "k": 1},
        {"m": 1, "n": 33, "k": 7},
        {"m": 33, "n": 1, "k": 64},
        {"m": 31, "n": 65, "k": 17},
        {"m": 132, "n": 260, "k": 20},
        {"m": 20, "n": 36, "k": 296},
        {"m": 96, "n": 64, "k": 32},
    ),
)


def _requires(tile_rows: int) -> Callable[[Size], str | None]:
    def requires(size: Size) -> str | None:
        if tile_rows and size["m"] > MAX_GRID_Y * tile_rows:
            return f"m may be at most {MAX_GRID_Y * tile_rows}, because a grid has at most {MAX_GRID_Y} blocks in y"
        if max(size["m"], size["n"], size["k"]) > MAX_EXTENT:
            return f"m, n and k may be at most {MAX_EXTENT}, because positions in a row are 32-bit"
        return None

    return requires


def _portions_fit(size: Size) -> str | None:
    if counted_slices(Product.of(size)) > MAX_EXTENT:
        return "k is too large: slices of all tiles that are cut are counted in 32 bits"
    return _requires(0)(size)


#: Rungs that are recorded at the sizes of the sweep too.
SWEPT = ("double_buffered", "tuned", "stream_k")


def _rung(name: str, idea: str, tile_rows: int = 0) -> Rung:
    plan, scratch = PLANS[name], SCRATCH.get(name, lambda product: {})
    return Rung(
        name,
        idea,
        lambda size: plan(Product.of(size)),
        alignment={"A": 16, "B": 16, "C": 16},
        requires=_portions_fit if name in SCRATCH else _requires(tile_rows),
        workspace=lambda size: scratch(Product.of(size)),
        swept=name in SWEPT,
    )


def _matrices(multiply: Callable[..., Callable[[], None]]) -> Callable[[dict[str, Any], Size], Callable[[], None]]:
    """A peer's ``prepare`` from a function of the three matrices."""
    return lambda arrays, size: multiply(*(arrays[name] for name in ("A", "B", "C")))


def _cublaslt(precision: str) -> Callable[..., Callable[[], None]]:
    return lambda a, b, c: cublaslt.product(*(cublaslt.matrix(array) for array in (a, b, c)), precision)


def _triton(precision: str) -> Callable[..., Callable[[], None]]:
    return lambda a, b, c: triton_peers.product(a, b, c, precision)


_TIMED = "cublasLtMatmul, heuristics timed"
#: Peers that try many algorithms or tiles: name, prepare, describe.
_TUNED = (
    ("cuBLASLt fp32", _matrices(_cublaslt("fp32")), cublas.cublas(_TIMED, "fp32")),
    ("cuBLASLt BF16x9", _matrices(_cublaslt("BF16x9")), cublas.cublas(_TIMED, "BF16x9")),
    ("Triton fp32", _matrices(_triton("ieee")), triton_peers.triton("matrix product", "fp32")),
    ("Triton 3xTF32", _matrices(_triton("tf32x3")), triton_peers.triton("matrix product", "3xTF32")),
    ("CUTLASS 3xTF32", _matrices(cutlass.product), cutlass.cutlass("GEMM, OpMultiplyAddFastF32", "3xTF32")),
)

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        _rung("square", "8 x 8 sums a thread, 16 bytes per access, conflicts left in", SQUARE),
        _rung("linearised", "B's columns in the order in which lanes read them", SQUARE),
        _rung("offset", "B's rows in shared memory 5 floats longer", SQUARE),
        _rung("padded", "the padding where the conflicts are", SQUARE),
        _rung("warp_tile", "compact warp tiles, lanes 8 x 4", SQUARE),
        _rung("neighbours", "lanes that share a quad are neighbours", SQUARE),
        _rung("double_buffered", "the next tiles are loaded to registers meanwhile", SQUARE),
        _rung("pipelined", "asynchronous copies, three stages deep"),
        _rung("prefetched", "operands of the next step are read ahead"),
        _rung("tuned", "a searched tile, 16 x 8 sums a thread"),
        _rung("stream_k", "equal portions of work for all SMs, cut along k"),
    ),
    peers=(
        Peer(
            "cuBLAS fp32",
            cublas.product(tf32=False),
            cublas.cublas("torch.matmul, cuBLAS's own choice", "fp32"),
        ),
        # TF32 rounds each factor to 11 bits: a relative error of 2^-11 for each product, and they average out.
        Peer(
            "cuBLAS TF32",
            cublas.product(tf32=True),
            cublas.cublas("torch.matmul, cuBLAS's own choice", "TF32"),
            tolerance=lambda size: 2.0**-10,
        ),
        Peer(
            "cuBLASLt TF32",
            _matrices(_cublaslt("TF32")),
            cublas.cublas(_TIMED, "TF32"),
            tolerance=lambda size: 2.0**-10,
            swept=False,
        ),
        *(Peer(name, prepare, describe, swept=False) for name, prepare, describe in _TUNED),
    ),
)
