"""The launches of each rung of tf32gemm."""

from __future__ import annotations

import numpy as np

from climb.bench.problem import Launch, Size, Tensor, ceil_div
from kernels.tensor_cores.hgemm.launches import MAX_EXTENT, MAX_GRID_Y, SMS, Plan

FLOAT = 4
#: Steps of k in a tile: 128 bytes of floats, the widest swizzle.
DEPTH = 32
#: Floats in 16 bytes; the copy engine needs rows that are multiples of 16 bytes.
PIECE = 4
CLUSTER = 2
#: The type of tensor maps with which the copy engine rounds to TF32.
ROUNDED = "tfloat32"
#: Rows and columns of the tiles that the pass over B transposes.
EDGE = 32


def any_size(size: Size) -> str | None:
    """Return why the rung of mma.sync refuses a size, or None."""
    if max(size["m"], size["n"], size["k"]) > MAX_EXTENT:
        return f"m, n and k may be at most {MAX_EXTENT}, because positions in a row are 32-bit"
    return None


def whole_pieces(size: Size) -> str | None:
    """Return why rungs with tensor maps refuse a size, or None. They need something to multiply, and rows of A and B
    of whole 16-byte pieces."""
    if min(size["m"], size["n"], size["k"]) < 1 or size["n"] % PIECE or size["k"] % PIECE:
        return "m must be at least 1, n and k multiples of 4: rows of a tensor map have a multiple of 16 bytes"
    if size["k"] > MAX_GRID_Y * EDGE:
        return f"k may be at most {MAX_GRID_Y * EDGE}, because a grid has at most {MAX_GRID_Y} blocks in y"
    return any_size(size)


def _extents(size: Size) -> tuple[np.int32, ...]:
    return tuple(np.int32(size[key]) for key in ("m", "n", "k"))


def _pipelined(size: Size) -> tuple[Launch, ...]:
    side, stages = 128, 3
    tiles = ceil_div(size["m"], side) * ceil_div(size["n"], side)
    if not tiles:
        return ()
    wide = "true" if size["n"] % PIECE == 0 and size["k"] % PIECE == 0 else "false"
    shared = stages * DEPTH * (2 * side + 8) * FLOAT
    return (Launch(f"tf32gemm_pipelined<{wide}>", (tiles,), (256,), ("A", "B", "C", *_extents(size)), shared),)


def _grid(size: Size, rows: int, cols: int) -> tuple[int]:
    """Clusters whose blocks cover ``rows`` x ``cols`` sums together, at most as many as the SMs have room for."""
    return (min(CLUSTER * ceil_div(size["m"], rows) * ceil_div(size["n"], cols), SMS),)


def _transposed(size: Size) -> tuple[Launch, ...]:
    rows, cols, stages = 128, 256, 4
    m, n, k = (size[key] for key in ("m", "n", "k"))
    maps = (
        Tensor("A", (m, k), (rows, DEPTH), ROUNDED, swizzle=128),
        Tensor("transpose", (n, k), (cols // CLUSTER, DEPTH), ROUNDED, swizzle=128),
    )
    shared = stages * (rows + cols) * DEPTH * FLOAT
    grid = _grid(size, CLUSTER * rows, cols)
    return (
        Launch(
            "tf32gemm_transpose",
            (ceil_div(n, EDGE), ceil_div(k, EDGE)),
            (EDGE, 8),
            ("B", "transpose", np.int32(k), np.int32(n)),
        ),
        Launch("tf32gemm_transposed", grid, (384,), (*maps, "C", *_extents(size)), shared),
    )


def _registers(name: str) -> Plan:
    rows, cols, stages = 256, 128, 4

    def plan(size: Size) -> tuple[Launch, ...]:
        m, n, k = (size[key] for key in ("m", "n", "k"))
        maps = (
            Tensor("A", (m, k), (rows // CLUSTER, DEPTH), ROUNDED, swizzle=128),
            Tensor("B", (k, n), (DEPTH, DEPTH), ROUNDED, swizzle=128),
        )
        shared = stages * (rows + cols) * DEPTH * FLOAT
        grid = _grid(size, rows, CLUSTER * cols)
        return (Launch(f"tf32gemm_{name}", grid, (384,), (*maps, "C", *_extents(size)), shared),)

    return plan


PLANS: dict[str, Plan] = {
    "pipelined": _pipelined,
    "transposed": _transposed,
    "registers": _registers("registers"),
    "overlapped": _registers("overlapped"),
}
