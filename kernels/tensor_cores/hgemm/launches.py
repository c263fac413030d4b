"""The launches of each rung of hgemm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from climb.bench.problem import Launch, Size, Tensor, ceil_div

#: SMs of the H200, and blocks of the rungs that keep one on each.
SMS = 132
#: Extents are ints in the kernels, and a tile may reach past the edge.
MAX_EXTENT = (1 << 31) - 257
MAX_GRID_Y = 65535
HALF, FLOAT = 2, 4
#: Steps of k in a tile: 128 bytes of halves, the widest swizzle.
DEPTH = 64
#: Halves in 16 bytes; the copy engine needs rows that are multiples of 16 bytes.
PIECE = 8
#: Columns of C that the copy engine stores at once: 128 bytes of floats.
STORED = 32

Plan = Callable[[Size], tuple[Launch, ...]]


def any_size(size: Size) -> str | None:
    """Return why the rungs of mma.sync refuse a size, or None."""
    if max(size["m"], size["n"], size["k"]) > MAX_EXTENT:
        return f"m, n and k may be at most {MAX_EXTENT}, because positions in a row are 32-bit"
    if size["m"] > 16 * MAX_GRID_Y:
        return f"m may be at most {16 * MAX_GRID_Y}, because a grid has at most {MAX_GRID_Y} blocks in y"
    return None


def whole_pieces(size: Size) -> str | None:
    """Return why rungs with tensor maps refuse a size, or None. They need something to multiply, and rows of A and B
    of whole 16-byte pieces."""
    if min(size["m"], size["n"], size["k"]) < 1 or size["n"] % PIECE or size["k"] % PIECE:
        return "m must be at least 1, n and k multiples of 8: rows of a tensor map have a multiple of 16 bytes"
    return any_size(size)


def _extents(size: Size) -> tuple[np.int32, ...]:
    return tuple(np.int32(size[key]) for key in ("m", "n", "k"))


def _nothing_to_write(plan: Plan) -> Plan:
    """No launch where C is empty."""
    return lambda size: plan(size) if size["m"] and size["n"] else ()


def _fragments(size: Size) -> tuple[Launch, ...]:
    grid = (ceil_div(size["n"], 32), ceil_div(size["m"], 16))
    return (Launch("hgemm_fragments", grid, (128,), ("A", "B", "C", *_extents(size))),)


def _warps(name: str, rows: int, cols: int, down: int, across: int, stages: int) -> Plan:
    """A rung of mma.sync with blocks of ``down`` x ``across`` warps; one stage lies in static shared memory."""

    def plan(size: Size) -> tuple[Launch, ...]:
        wide = "true" if size["n"] % PIECE == 0 and size["k"] % PIECE == 0 else "false"
        kernel = f"hgemm_{name}<Tile<{rows}, {cols}, {down}, {across}>, {wide}>"
        tiles = ceil_div(size["m"], rows) * ceil_div(size["n"], cols)
        shared = stages * (rows + cols) * DEPTH * HALF if stages > 1 else 0
        return (Launch(kernel, (tiles,), (32 * down * across,), ("A", "B", "C", *_extents(size)), shared),)

    return plan


def maps(size: Size, rows: int, depth: int = DEPTH) -> tuple[Tensor, Tensor]:
    """Tensor maps of A, in boxes of ``rows`` x 64, and of B, in boxes of ``depth`` x 64."""
    m, n, k = (size[key] for key in ("m", "n", "k"))
    return (
        Tensor("A", (m, k), (rows, DEPTH), "float16", swizzle=128),
        Tensor("B", (k, n), (depth, 64), "float16", swizzle=128),
    )


def results(size: Size) -> Tensor:
    """A tensor map of C, in boxes of 64 x 32."""
    return Tensor("C", (size["m"], size["n"]), (64, STORED), "float32", swizzle=128)


def _warpgroups(
    name: str, rows: int, cols: int, stages: int, threads: int, cluster: int = 1, resident: bool = False
) -> Plan:
    """A rung of wgmma: ``cluster`` blocks share tiles along m; with ``resident`` at most one block for each SM."""

    def plan(size: Size) -> tuple[Launch, ...]:
        blocks = cluster * ceil_div(size["m"], cluster * rows) * ceil_div(size["n"], cols)
        grid = min(blocks, SMS) if resident else blocks
        shared = stages * (rows + cols) * DEPTH * HALF
        return (Launch(f"hgemm_{name}", (grid,), (threads,), (*maps(size, rows), "C", *_extents(size)), shared),)

    return plan


@dataclass(frozen=True)
class _Width:
    """Columns of a tile of large.cuh, stages of its ring, places for a warpgroup's pieces, rows of a box of B."""

    cols: int
    stages: int
    places: int
    depth: int


#: Rows of a tile that goes through shared memory, and blocks of a cluster, which share columns.
ROWS, CLUSTER = 128, 2
WIDE, NARROW = _Width(256, 4, 2, DEPTH), _Width(192, 5, 1, DEPTH // 2)


def _pairs(size: Size, cols: int) -> int:
    """Clusters' tiles."""
    return ceil_div(size["m"], CLUSTER * ROWS) * ceil_div(size["n"], cols)


def _rounds(size: Size, cols: int) -> int:
    """Tiles, one after the other, of the SM with the most of them."""
    return ceil_div(CLUSTER * _pairs(size, cols), SMS)


def _through_shared_memory(name: str, balanced: bool = False, width: Callable[[Size], _Width] | None = None) -> Plan:
    """A rung whose sums go through shared memory, by clusters of two, with tiles of 128 x 256 if nothing else is said.

    With ``balanced`` the grid has as few clusters as need no more rounds of tiles than all SMs would.
    """

    def plan(size: Size) -> tuple[Launch, ...]:
        tile = width(size) if width else WIDE
        pairs = _pairs(size, tile.cols)
        blocks = CLUSTER * ceil_div(pairs, _rounds(size, tile.cols)) if balanced else min(CLUSTER * pairs, SMS)
        shared = tile.stages * (ROWS + tile.cols) * DEPTH * HALF + 2 * tile.places * 64 * STORED * FLOAT
        arguments = (*maps(size, ROWS, tile.depth), results(size), *_extents(size))
        kernel = f"hgemm_{name}" if name == "fast_cu" else f"hgemm_{name}<{tile.cols}>"
        return (Launch(kernel, (blocks,), (384,), arguments, shared),)

    return plan


def _best_width(size: Size) -> _Width:
    """The tile whose rounds take the fewest cycles of shared memory.

    For 64 steps of k, two warpgroups read 2 x 64 rows of A and twice all columns of B, and the copy engine writes the
    rows and columns once: 256 + 3 x columns wavefronts of 128 bytes.
    """
    return min((WIDE, NARROW), key=lambda tile: _rounds(size, tile.cols) * (256 + 3 * tile.cols))


#: Rows and columns of small tiles, and stages of their ring.
SMALL = (64, 128, 8)


def _with_small_tiles(large: Plan) -> Plan:
    """Small tiles where a block for each fits onto the GPU at once, and ``large`` elsewhere."""

    def plan(size: Size) -> tuple[Launch, ...]:
        rows, cols, stages = SMALL
        blocks = ceil_div(size["m"], rows) * ceil_div(size["n"], cols)
        if blocks > SMS:
            return large(size)
        kernel = f"hgemm_small<{cols}, {stages}>"
        shared = stages * (rows + cols) * DEPTH * HALF
        return (Launch(kernel, (blocks,), (160,), (*maps(size, rows), results(size), *_extents(size)), shared),)

    return plan


#: Rows and columns of a tile that two blocks share, stages of their rings, threads of a block.
SPLIT, SPLIT_STAGES, SPLIT_THREADS = 128, 6, 288


def _with_split_k(other: Plan) -> Plan:
    """Tiles of 128 x 128 that pairs of blocks share where all blocks fit onto the GPU at once, and ``other`` elsewhere.

    A block of ``other`` brings 64 + 128 rows of all of k into its SM. A block of a pair brings 128 + 128 rows of half
    of k, and half of the tile's sums: less, if k is above 256.
    """

    def plan(size: Size) -> tuple[Launch, ...]:
        blocks = 2 * ceil_div(size["m"], SPLIT) * ceil_div(size["n"], SPLIT)
        if blocks > SMS or size["k"] <= 256:
            return other(size)
        shared = SPLIT_STAGES * 2 * SPLIT * DEPTH * HALF + SPLIT // 2 * SPLIT * FLOAT
        arguments = (*maps(size, SPLIT), results(size), *_extents(size))
        return (Launch("hgemm_split", (blocks,), (SPLIT_THREADS,), arguments, shared),)

    return plan


#: Widths of tiles of consumers that take turns, those for products with few steps of k first.
SHORT_TURNS, LONG_TURNS = _Width(128, 6, 2, DEPTH), _Width(192, 5, 1, DEPTH // 2)
#: Slices of k for which products of a tile of 128 x 256 take ten times as long as stores of half its sums, which are
#: exposed: 64 KB from each of 128 blocks take 3500 cycles at the write rate, the products of a slice 1024.
FEW_SLICES = 10 * 3500 // 1024


def _turns(size: Size) -> _Width | None:
    """The tile for consumers that take turns; None where two consumers should share one of 128 x 256.

    We assume that power sets the rate of products, and shared memory does not: then the tile with the fewest columns in
    all its rounds is the fastest. Where k is short, stores that nothing hides decide against 128 x 256.
    """
    few = ceil_div(size["k"], DEPTH) <= FEW_SLICES
    found = min((SHORT_TURNS if few else WIDE, LONG_TURNS), key=lambda tile: _rounds(size, tile.cols) * tile.cols)
    return None if found is WIDE else found


def _with_turns(other: Plan) -> Plan:
    """Consumers that take turns with tiles of ``_turns``, and ``other`` where there is none."""

    def plan(size: Size) -> tuple[Launch, ...]:
        tile = _turns(size)
        if tile is None:
            return other(size)
        blocks = CLUSTER * ceil_div(_pairs(size, tile.cols), _rounds(size, tile.cols))
        shared = tile.stages * (ROWS + tile.cols) * DEPTH * HALF + 2 * tile.places * 64 * STORED * FLOAT
        arguments = (*maps(size, ROWS, tile.depth), results(size), *_extents(size))
        return (Launch(f"hgemm_pingpong<{tile.cols}>", (blocks,), (384,), arguments, shared),)

    return plan


_BALANCED = _with_small_tiles(_through_shared_memory("overlapped", balanced=True))
_TWO_WIDTHS = _with_small_tiles(_through_shared_memory("overlapped", balanced=True, width=_best_width))
_PINGPONG = _with_small_tiles(_with_turns(_through_shared_memory("overlapped", balanced=True)))

PLANS: dict[str, Plan] = {
    "fragments": _nothing_to_write(_fragments),
    "ldmatrix": _nothing_to_write(_warps("ldmatrix", 64, 64, 2, 2, 1)),
    "pipelined": _nothing_to_write(_warps("pipelined", 128, 256, 2, 4, 3)),
    "wgmma": _warpgroups("wgmma", 128, 128, 1, 128),
    "specialised": _warpgroups("specialised", 128, 128, 6, 160),
    "two_consumers": _warpgroups("two_consumers", 128, 256, 4, 384),
    "multicast": _warpgroups("multicast", 128, 256, 4, 384, cluster=2),
    "persistent": _warpgroups("persistent", 128, 256, 4, 384, cluster=2, resident=True),
    "fast_cu": _through_shared_memory("fast_cu"),
    "overlapped": _through_shared_memory("overlapped"),
    "small_tiles": _with_small_tiles(_through_shared_memory("overlapped")),
    "balanced": _BALANCED,
    "split_k": _with_split_k(_BALANCED),
    "two_widths": _TWO_WIDTHS,
    "pingpong": _PINGPONG,
}
