"""The launches of the rungs for few rows, and their scratch arrays."""

from __future__ import annotations

import numpy as np

from climb.bench.problem import Launch, Tensor, ceil_div
from kernels.sgemm.sgemm.product import Product
from kernels.tensor_cores.tgemm.launches import PARTS, PREPARE_THREADS, SHORTEST, SMS, needs_copy, rounded_up

#: Of few.cuh: rows and columns of a tile, the edge of a box, threads, bytes of all stages.
FEW_ROWS, FEW_COLUMNS, FEW_BOX, FEW_THREADS, FEW_SHARED = 32, 64, 32, 512, 4 * 3 * 4 * 4096
#: Parts of k of a tile, for each as many blocks as surely run at the same time, because clusters lie within a GPC.
FEW_PARTS = {8: 112, 4: 112, 2: SMS}
#: Of wide.cuh: columns of a tile, threads, bytes of all stages; parts as above.
WIDE_COLUMNS, WIDE_THREADS, WIDE_SHARED = 320, 768, 4 * 12 * 4096
WIDE_PARTS = {8: 112, 4: 112, 2: SMS}
#: Of shares.cuh: columns of a tile, threads, bytes of all stages; blocks need no neighbours, only an SM each.
SHARES_COLUMNS, SHARES_THREADS, SHARES_SHARED = 256, 640, 4 * 10 * 4096
SHARES_PARTS = dict.fromkeys(PARTS, SMS)
#: Blocks that copy a matrix, where its rows are not at multiples of 16 bytes.
COPY_BLOCKS = 264


def few_rows(product: Product) -> tuple[Launch, ...]:
    """One launch; a cluster of blocks shares a tile, a part of k each."""
    parts, tiles = _cut(product, FEW_COLUMNS, FEW_PARTS)
    return _of_few(product, f"multiply_few<{parts}>", parts * tiles, FEW_THREADS, FEW_SHARED)


def wide_tiles(product: Product) -> tuple[Launch, ...]:
    """The same with wide tiles."""
    parts, tiles = _cut(product, WIDE_COLUMNS, WIDE_PARTS)
    return _of_few(product, f"multiply_wide<{parts}>", parts * tiles, WIDE_THREADS, WIDE_SHARED)


def shares(product: Product) -> tuple[Launch, ...]:
    """The same without clusters: the blocks of a tile meet in memory."""
    parts, tiles = _cut(product, SHARES_COLUMNS, SHARES_PARTS)
    kernel = f"multiply_shares<{parts}>"
    return _of_few(product, kernel, parts * tiles, SHARES_THREADS, SHARES_SHARED, ("partial",))


def _cut(product: Product, width: int, most: dict[int, int]) -> tuple[int, int]:
    """The parts of k of each tile of ``width`` columns, as many as there are SMs for, by ``most``; and the tiles."""
    tiles = ceil_div(product.m, FEW_ROWS) * ceil_div(product.n, width)
    fits = (p for p, blocks in most.items() if p * tiles <= blocks and p * SHORTEST <= product.k)
    return next(fits, 1), tiles


def _of_few(
    product: Product, kernel: str, blocks: int, threads: int, shared: int, more: tuple[str, ...] = ()
) -> tuple[Launch, ...]:
    """One launch of ``kernel``; matrices are copied before it where boxes cannot begin."""
    copied = needs_copy(product)

    def source(name: str, rows: int, columns: int, ld: int) -> tuple[Tensor, Launch]:
        pitch = rounded_up(columns, 4) if copied else ld
        at = f"{name}_copy" if copied else name
        boxes = Tensor(at, (rows or 1, columns or 1), (FEW_BOX, FEW_BOX), "float32", 128, pitch, l2_promotion=256)
        args = (name, np.int32(ld), np.int32(columns), np.int32(rows), at, np.int32(pitch))
        return boxes, Launch("copy_rows", (COPY_BLOCKS,), (PREPARE_THREADS,), args)

    a, copy_a = source("A", product.m, product.k, product.lda)
    b, copy_b = source("B", product.k, product.n, product.ldb)
    multiply = Launch(kernel, (blocks,), (threads,), (a, b, *product.args, *more), shared)
    return (copy_a, copy_b, multiply) if copied else (multiply,)


def copies(product: Product) -> dict[str, tuple[tuple[int, ...], str]]:
    """The matrices that are copied, with their rows at multiples of 16 bytes."""
    shapes = {"A_copy": (product.m, product.k), "B_copy": (product.k, product.n)}
    return {
        name: ((rows or 1, rounded_up(columns, 4)), "float32")
        for name, (rows, columns) in shapes.items()
        if needs_copy(product)
    }


def shares_scratch(product: Product) -> dict[str, tuple[tuple[int, ...], str]]:
    """The same, and the sums that the blocks of a tile exchange."""
    parts, tiles = _cut(product, SHARES_COLUMNS, SHARES_PARTS)
    return {**copies(product), "partial": ((parts * tiles * FEW_ROWS * SHARES_COLUMNS,), "float32")}
