"""The ladder matmul goes on: the copy engine feeds a product on the FMA pipe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Launch, Rung, Size, Tensor, ceil_div
from kernels.tiling import matmul

SMS = 132
#: Steps of k in a slice; the kernels' kDepth.
DEPTH = 32
#: Blocks of a cluster, and threads of the warpgroup that copies.
CLUSTER, WARPGROUP = 2, 128
MAX_GRID_Y = 65535


@dataclass(frozen=True)
class Tile:
    """The ``Tile`` of multiply.cuh: elements of C of a block, and slices in the ring."""

    rows: int
    cols: int
    stages: int
    across: int = 16

    @property
    def threads(self) -> int:
        """Threads that compute, 8 x ``across`` sums each."""
        return self.rows * self.cols // (8 * self.across)

    @property
    def shared_bytes(self) -> int:
        return 4 * self.stages * DEPTH * (self.rows + self.cols)

    @property
    def variant(self) -> str:
        """The kernels' template arguments."""
        return f"<Tile<{self.rows}, {self.cols}, {self.across}>, {self.stages}>"

    def grid(self, size: Size) -> tuple[int, int]:
        """A block for each tile of C."""
        return (ceil_div(size["n"], self.cols), ceil_div(size["m"], self.rows))


#: Two blocks of the first fit on an SM, and one of the second.
SQUARE, WIDE = Tile(128, 128, 3), Tile(128, 256, 4)

problem = replace(
    matmul.problem,
    name="async_matmul",
    title="Matrix product, float32, fed by the copy engine",
    sweep=tuple({"m": edge, "n": edge, "k": edge} for edge in (1024, 2048)),
    check=({"m": 5, "n": 3, "k": 0}, {"m": 5, "n": 36, "k": 132}, {"m": 31, "n": 65, "k": 17},
           {"m": 140, "n": 260, "k": 68}, {"m": 96, "n": 64, "k": 32}),
)  # fmt: skip


def _requires(size: Size) -> str | None:
    if size["k"] % 4 or size["n"] % 4 or not size["k"]:
        return "n and k must be multiples of 4 and not 0: the rows of a tensor map start at multiples of 16 bytes"
    if size["m"] > MAX_GRID_Y * SQUARE.rows or max(size["n"], size["k"]) > 1 << 30:
        return f"m may be at most {MAX_GRID_Y * SQUARE.rows}, n and k at most {1 << 30}"
    return None


def _extents(size: Size) -> tuple[np.int32, ...]:
    return tuple(np.int32(size[key]) for key in ("m", "n", "k"))


def _maps(size: Size, tile: Tile, share: int = DEPTH) -> tuple[Any, ...]:
    """Tensor maps of A, swizzled, and of B, in boxes of ``share`` steps of k; then C and the extents."""
    return (
        Tensor("A", (size["m"], size["k"]), (tile.rows, DEPTH), "float32", swizzle=128),
        Tensor("B", (size["k"], size["n"]), (share, tile.cols), "float32"),
        "C",
        *_extents(size),
    )


def _pipelined(size: Size) -> tuple[Launch, ...]:
    args = ("A", "B", "C", *_extents(size))
    return (_launch("matmul_pipelined", SQUARE, SQUARE.grid(size), 0, args),)


def _launch(kernel: str, tile: Tile, grid: tuple[int, ...], more: int, args: tuple[Any, ...]) -> Launch:
    """A launch with ``more`` threads than compute."""
    return Launch(f"{kernel}{tile.variant}", grid, (tile.threads + more,), args, tile.shared_bytes)


def _multicast(size: Size) -> tuple[Launch, ...]:
    across, down = WIDE.grid(size)
    grid = (across, ceil_div(down, CLUSTER) * CLUSTER)
    return (_launch("matmul_multicast", WIDE, grid, WARPGROUP, _maps(size, WIDE, DEPTH // CLUSTER)),)


def _persistent(size: Size) -> tuple[Launch, ...]:
    across, down = WIDE.grid(size)
    grid = (min(SMS, across * ceil_div(down, CLUSTER) * CLUSTER),)
    return (_launch("matmul_persistent", WIDE, grid, WARPGROUP, _maps(size, WIDE, DEPTH // CLUSTER)),)


def _rung(name: str, idea: str, launches: Callable[[Size], tuple[Launch, ...]], **rest: str) -> Rung:
    return Rung(name, idea, launches, alignment=matmul.QUAD_ALIGNED, requires=_requires, **rest)


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        replace(matmul.ladder["double_buffered"].rung, source="../../tiling/matmul/07_double_buffered.cu"),
        _rung("pipelined", "a ring of slices that asynchronous copies fill", _pipelined, capability="8.0"),
        _rung(
            "tma",
            "one thread starts two copies a slice for the block",
            lambda size: (_launch("matmul_tma", SQUARE, SQUARE.grid(size), 0, _maps(size, SQUARE)),),
            capability="9.0",
        ),
        _rung(
            "specialised",
            "a warp of its own starts the copies",
            lambda size: (_launch("matmul_specialised", SQUARE, SQUARE.grid(size), 32, _maps(size, SQUARE)),),
            capability="9.0",
        ),
        _rung(
            "setmaxnreg",
            "the producer's registers go to those that compute",
            lambda size: (_launch("matmul_setmaxnreg", WIDE, WIDE.grid(size), WARPGROUP, _maps(size, WIDE)),),
            arch="sm_90a",
            capability="9.0",
        ),
        _rung("multicast", "two blocks share B's slices", _multicast, arch="sm_90a", capability="9.0"),
        _rung("persistent", "blocks take tile after tile", _persistent, arch="sm_90a", capability="9.0"),
    ),
    peers=matmul.ladder.peers,
)
