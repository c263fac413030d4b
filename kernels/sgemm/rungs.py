"""How each rung computes a product: tiles, parts of k, launches, scratch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.lab.problem import Launch, ceil_div

from .product import MAX_GRID_Y, Plan, Product, Scratch

FLOAT = 4
WARP = 32
#: Side of the tile of C of one block, and threads of the block, up to the rung buffered.
SQUARE, SQUARE_THREADS = 128, 256
#: Threads of a block that adds parts.
GATHER_THREADS = 256


@dataclass(frozen=True)
class Tile:
    """The sizes of ``Tile`` in pipeline.cuh: of a block's tile, of the ring, of the grids of warps and of lanes."""

    rows: int
    cols: int
    depth: int
    stages: int
    warps_down: int
    warps_across: int
    lanes_down: int

    @property
    def threads(self) -> int:
        return WARP * self.warps_down * self.warps_across

    @property
    def sums(self) -> int:
        """Elements of C that a thread computes."""
        return self.rows * self.cols // self.threads

    @property
    def shared_bytes(self) -> int:
        return FLOAT * self.stages * self.depth * (self.rows + 4 + self.cols)

    @property
    def blocks(self) -> int:
        """Blocks on one SM that the compiler leaves registers for."""
        return max(1, (512 if self.sums <= 64 else 256) // self.threads)

    def __str__(self) -> str:
        values = (self.rows, self.cols, self.depth, self.stages, self.warps_down, self.warps_across, self.lanes_down)
        return f"Tile<{', '.join(map(str, values))}>"

    def count(self, product: Product) -> int:
        """Tiles that cover C."""
        return ceil_div(product.m, self.rows) * ceil_div(product.n, self.cols)

    def variant(self, product: Product) -> str:
        """The kernel's template arguments for this product."""
        divides = product.m % self.rows == product.n % self.cols == product.k % self.depth == 0
        whole = product.width == 4 and divides
        return f"<{self}, {product.width}, {'true' if whole else 'false'}>"


def square_tiles(name: str) -> Plan:
    """One block for each square tile of C, columns of tiles along the grid's x."""

    def plan(product: Product) -> tuple[Launch, ...]:
        grid = (ceil_div(product.n, SQUARE), ceil_div(product.m, SQUARE))
        return (Launch(f"sgemm_{name}<{product.width}>", grid, (SQUARE_THREADS,), product.args),)

    return plan


def tiles(name: str, tile: Tile) -> Plan:
    """One block for each tile of C, along the grid's x alone."""

    def plan(product: Product) -> tuple[Launch, ...]:
        grid, block = (tile.count(product),), (tile.threads,)
        return (Launch(f"sgemm_{name}{tile.variant(product)}", grid, block, product.args, tile.shared_bytes),)

    return plan


def parts_of(product: Product, tile: Tile, parts: int) -> tuple[int, int]:
    """The steps of k in a part, a multiple of the tile's depth, and how many parts of that length there are."""
    part = max(ceil_div(ceil_div(product.k, parts), tile.depth), 1) * tile.depth
    return part, max(ceil_div(product.k, part), 1)


def split(tile: Tile, parts: int, name: str = "split") -> tuple[Plan, Scratch]:
    """Blocks for each tile and each part of k, then the sum of the parts; with one part just the blocks."""

    def plan(product: Product) -> tuple[Launch, ...]:
        part, count = parts_of(product, tile, parts)
        m, n, k, alpha, a, lda, b, ldb, beta, c, ldc = product.args
        kernel, grid = f"sgemm_{name}{tile.variant(product)}", (tile.count(product), count)
        if count == 1:
            args: tuple[Any, ...] = (m, n, k, np.int32(part), alpha, a, lda, b, ldb, beta, c, ldc)
            return (Launch(kernel, grid, (tile.threads,), args, tile.shared_bytes),)
        args = (m, n, k, np.int32(part), np.float32(1), a, lda, b, ldb, np.float32(0), "parts", n)
        gather = (m, n, np.int32(count), alpha, "parts", beta, c, ldc)
        threads = product.m * ceil_div(product.n, 4)
        return (
            Launch(kernel, grid, (tile.threads,), args, tile.shared_bytes),
            Launch(f"sgemm_gather<{product.width}>", (ceil_div(threads, GATHER_THREADS),), (GATHER_THREADS,), gather),
        )

    def scratch(product: Product) -> dict[str, tuple[tuple[int, ...], str]]:
        _, count = parts_of(product, tile, parts)
        return {"parts": ((count * product.m * product.n,), "float32")} if count > 1 else {}

    return plan, scratch


#: The tile of pipelined and read_ahead: that of the rungs before, in a ring of three stages of 16 steps of k.
SQUARE_RING = Tile(128, 128, 16, 3, 2, 4, 8)
#: The tile that was the fastest at 4096 x 4096 x 4096 in the search.
BEST = Tile(128, 256, 16, 3, 2, 4, 4)


def choose(product: Product) -> tuple[Tile, int]:
    """The tile for a product, and in how many parts k is worked on."""
    return BEST, 1


def _split_plan(product: Product) -> tuple[Launch, ...]:
    return split(*choose(product))[0](product)


def _split_scratch(product: Product) -> dict[str, tuple[tuple[int, ...], str]]:
    return split(*choose(product))[1](product)


#: The launches of each rung.
PLANS: dict[str, Plan] = {
    **{name: square_tiles(name) for name in ("square", "linearised", "offset", "padded", "warp_tile", "neighbours")},
    "buffered": square_tiles("buffered"),
    "pipelined": tiles("pipelined", SQUARE_RING),
    "read_ahead": tiles("read_ahead", SQUARE_RING),
    "tuned": tiles("tuned", BEST),
    "split": _split_plan,
}
#: The scratch arrays of the rungs that need any.
SCRATCH: dict[str, Scratch] = {"split": _split_scratch}
