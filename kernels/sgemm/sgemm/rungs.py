"""The plan of each rung for a product: tiles, parts of k, launches, scratch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from climb.bench.problem import Launch, ceil_div
from kernels.sgemm.sgemm.product import Plan, Product, Scratch

FLOAT = 4
WARP = 32
#: SMs of the GPU for which tiles and parts are chosen, an H200. Elsewhere the choice is right too, and may be slower.
SMS = 132
#: Side of the tile of C of one block, and threads of the block, up to the rung double_buffered.
SQUARE, SQUARE_THREADS = 128, 256
#: Threads of a block that adds parts.
GATHER_THREADS = 256
#: Slices that a portion has at least: a pipeline has to fill.
SHORTEST = 8
#: What a slice of a portion costs, in slices of a whole tile, and what it costs to add the parts, in slices.
PORTION_COST, GATHER_COST = 1.04, 5


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
        divides = product.m % self.rows == product.n % self.cols == product.k % self.depth == 0 < product.k
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


@dataclass(frozen=True)
class Shares:
    """The distribution of tiles: a block each for ``whole`` of them; the rest, cut along k, goes to ``workers``."""

    whole: int
    rest: int
    portion: int
    workers: int


def share(product: Product, tile: Tile) -> Shares:
    """Whole tiles for full waves of blocks; what is left in equal portions for a wave more, if that is any shorter.

    A portion costs a little more than its slices would in a whole tile, and its sums have to be written and added.
    """
    count, slots, slices = tile.count(product), SMS * tile.blocks, max(1, ceil_div(product.k, tile.depth))
    rest = count % slots
    portion = max(SHORTEST, ceil_div(rest * slices, slots))
    if rest == 0 or portion * PORTION_COST + GATHER_COST >= slices:
        return Shares(count, 0, 0, 0)
    return Shares(count - rest, rest, portion, ceil_div(rest * slices, portion))


def stream(choose: Callable[[Product], Tile]) -> tuple[Plan, Scratch]:
    """Blocks for whole tiles; blocks for portions of the rest, and the sum of what was cut."""

    def plan(product: Product) -> tuple[Launch, ...]:
        tile = choose(product)
        shares, variant = share(product, tile), tile.variant(product)
        m, n, k, alpha, a, lda, b, ldb, beta, c, ldc = product.args
        launches = []
        if shares.whole:
            block = (tile.threads,)
            launches.append(Launch(f"sgemm_whole{variant}", (shares.whole,), block, product.args, tile.shared_bytes))
        if shares.rest:
            head = (m, n, k, np.int32(shares.whole), np.int32(shares.portion), alpha)
            rest = (*head, a, lda, b, ldb, beta, c, ldc, "parts")
            grid = (ceil_div(tile.rows * tile.cols // 4, GATHER_THREADS), shares.rest)
            gather, sums = f"sgemm_gather<{tile}, {product.width}>", (*head, beta, c, ldc, "parts")
            launches += [
                Launch(f"sgemm_portion{variant}", (shares.workers,), (tile.threads,), rest, tile.shared_bytes),
                Launch(gather, grid, (GATHER_THREADS,), sums),
            ]
        return tuple(launches)

    def scratch(product: Product) -> dict[str, tuple[tuple[int, ...], str]]:
        tile = choose(product)
        floats = 2 * share(product, tile).workers * tile.rows * tile.cols
        return {"parts": ((floats,), "float32")} if floats else {}

    return plan, scratch


def counted_slices(product: Product) -> int:
    """The largest number of a slice that the kernel of stream_k counts to."""
    tile = choose(product)
    return (tile.count(product) % (SMS * tile.blocks) + 1) * ceil_div(product.k, tile.depth)


#: The tile of pipelined and prefetched: that of the rungs before, in a ring of three stages of 16 steps of k.
SQUARE_RING = Tile(128, 128, 16, 3, 2, 4, 8)
#: The tile that was the fastest at 4096 x 4096 x 4096 in the search, and one of as many elements that is less wide.
BEST, SQUARER = Tile(64, 512, 16, 3, 2, 4, 4), Tile(128, 256, 16, 3, 2, 4, 8)
#: Where C has at most 32 rows: a higher tile would leave most of its rows empty.
SKINNY = Tile(32, 128, 16, 2, 1, 2, 4)


def searched_tile(product: Product) -> Tile:
    """The best tile, or the squarer one where fewer of those cover C."""
    return min(BEST, SQUARER, key=lambda tile: tile.count(product))


def choose(product: Product) -> Tile:
    """The tile for a product."""
    return SKINNY if product.m <= SKINNY.rows else searched_tile(product)


STREAM, STREAM_SCRATCH = stream(choose)

#: The launches of each rung.
PLANS: dict[str, Plan] = {
    **{name: square_tiles(name) for name in ("square", "linearised", "offset", "padded", "warp_tile", "neighbours")},
    "double_buffered": square_tiles("double_buffered"),
    "pipelined": tiles("pipelined", SQUARE_RING),
    "prefetched": tiles("prefetched", SQUARE_RING),
    "tuned": lambda product: tiles("tuned", searched_tile(product))(product),
    "stream_k": STREAM,
}
#: The scratch arrays of the rungs that need any.
SCRATCH: dict[str, Scratch] = {"stream_k": STREAM_SCRATCH}
