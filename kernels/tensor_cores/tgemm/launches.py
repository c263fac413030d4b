"""The launches of each rung for a product, and its scratch arrays; those of the rungs for few rows are in few.py."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from climb.bench.problem import Launch, Tensor, ceil_div
from kernels.sgemm.sgemm.product import Plan, Product, Scratch

#: Of unfused.cuh and parts.cuh: the side of a tile of C, threads, slots of the ring, vectors that a block splits.
TILE, MULTIPLY_THREADS, STAGES, ROW_BYTES = 128, 256, 3, 128
VECTORS, SPLIT_THREADS = 32, 256


def rounded_up(extent: int, step: int) -> int:
    """The least positive multiple of ``step`` that is not below ``extent``."""
    return max(1, ceil_div(extent, step)) * step


@dataclass(frozen=True)
class Scheme:
    """The parts of a rung that splits first: their type in parts.cuh, bytes, number, and slices until promotion."""

    type: str
    bytes: int
    parts: int
    chain: int = 0

    @property
    def dtype(self) -> str:
        return f"uint{8 * self.bytes}"

    def pitch(self, product: Product) -> int:
        """Elements from one row of a part to the next: tensor maps ask for a multiple of 16 bytes."""
        return rounded_up(product.k, 16 // self.bytes)


def split_first(scheme: Scheme) -> tuple[Plan, Scratch]:
    """Two launches split the factors, a third multiplies pairs of parts."""

    def plan(product: Product) -> tuple[Launch, ...]:
        _m, _n, k, _alpha, a, lda, b, ldb, *_ = product.args
        pitch = scheme.pitch(product)

        def split(rows: bool, source: str, ld: np.int32, count: int) -> Launch:
            kernel = f"split<{scheme.type}, {scheme.parts}, {'true' if rows else 'false'}>"
            target = ("row_exponents", "a_parts") if rows else ("column_exponents", "b_parts")
            args = (source, ld, np.int32(count), k, *target, np.int32(pitch))
            return Launch(kernel, (ceil_div(count, VECTORS),), (SPLIT_THREADS,), args)

        def boxes(parts: str, count: int) -> Tensor:
            shape, box = (scheme.parts, count, pitch), (1, TILE, ROW_BYTES // scheme.bytes)
            return Tensor(parts, shape, box, scheme.dtype, swizzle=ROW_BYTES)

        grid = (ceil_div(product.n, TILE), ceil_div(product.m, TILE))
        args = (boxes("a_parts", product.m), boxes("b_parts", product.n), *product.args)
        return (
            split(True, a, lda, product.m),
            split(False, b, ldb, product.n),
            Launch(
                f"multiply<Scheme, {scheme.chain}>",
                grid,
                (MULTIPLY_THREADS,),
                (*args, "row_exponents", "column_exponents"),
                STAGES * 2 * TILE * ROW_BYTES,
            ),
        )

    def scratch(product: Product) -> dict[str, tuple[tuple[int, ...], str]]:
        pitch = scheme.pitch(product)
        return {
            "row_exponents": ((product.m,), "int32"),
            "column_exponents": ((product.n,), "int32"),
            "a_parts": ((scheme.parts * product.m * pitch,), scheme.dtype),
            "b_parts": ((scheme.parts * product.n * pitch,), scheme.dtype),
        }

    return plan, scratch


#: Of fused.cuh: rows and columns of a block's tile, the depth of a slice of k, slots of the ring, threads.
FUSED_ROWS, FUSED_COLUMNS, FUSED_DEPTH, FUSED_STAGES, FUSED_THREADS = 128, 256, 32, 4, 384
CLUSTER, BOX_COLUMNS = 2, 64
FUSED_SHARED = FUSED_STAGES * (4 * FUSED_ROWS + 2 * 2 * FUSED_COLUMNS) * FUSED_DEPTH
#: Of prepare.cuh: threads, rows of A and columns and rows of B for each block.
PREPARE_THREADS, ROWS_A_BLOCK, COLUMNS, ROWS_OF_B_A_BLOCK = 256, 8, 128, 64
#: Of one_pass.cuh: threads and rows of B for each block; and how many blocks may wait for each other. All of these must
#: fit on the GPU: GPUs of compute capability 9.0 have at least 114 SMs, but a MIG partition may have fewer than 64.
SPLIT_ONCE_THREADS, ROWS_OF_SPLIT, MOST_WAITING = 512, 128, 64
#: SMs of the GPU for which grids are chosen, an H200. Elsewhere they are right too, and may be slower.
SMS = 132


def needs_copy(product: Product) -> bool:
    """Return whether A's rows have to be copied to where a tensor map can begin."""
    return product.width != 4 or product.k == 0


def _split_shape(product: Product) -> tuple[int, int]:
    """Rows and columns of a part of B: whole groups of 16 rows, whole groups of 16 bytes."""
    return rounded_up(product.k, 16), rounded_up(product.n, 8)


def _strips(product: Product) -> int:
    """Strips of B's columns."""
    return ceil_div(_split_shape(product)[1], COLUMNS)


def row_exponents(product: Product) -> Launch:
    """The exponents of A's rows, zeros where the maxima of B's columns will be, and a copy of A if it takes one."""
    m, _n, k, _, a, lda, *_ = product.args
    width = 1 if needs_copy(product) else 4
    copy = ("copy", np.int32(rounded_up(product.k, 4))) if width == 1 else ("A", np.int32(0))
    args = (a, lda, m, k, "row_exponents", "maxima", np.int32(_words(product)), *copy)
    return Launch(f"row_exponents<{width}>", (ceil_div(product.m, ROWS_A_BLOCK),), (PREPARE_THREADS,), args)


def two_passes(product: Product, permuted: bool = True) -> tuple[Launch, ...]:
    """B's columns are read for their largest elements, and again to be split.

    ``permuted``: rows lie in the order in which a lane reads floats of A.
    """
    _, n, k, _, _, _, b, ldb, *_ = product.args
    rows, pitch = _split_shape(product)
    grid = (ceil_div(pitch, COLUMNS), ceil_div(rows, ROWS_OF_B_A_BLOCK))
    block, split = (PREPARE_THREADS,), ("maxima", "column_exponents", "high", "low", np.int32(pitch))
    return (
        Launch(f"column_maxima<{product.width}>", grid, block, (b, ldb, n, k, "maxima")),
        Launch(f"split_columns<{product.width}, {_bool(permuted)}>", grid, block, (b, ldb, n, k, *split)),
    )


def one_pass(product: Product, permuted: bool = True) -> tuple[Launch, ...]:
    """B's columns are read once, where the blocks of a strip are certain to be on the GPU at the same time."""
    _, n, k, _, _, _, b, ldb, *_ = product.args
    rows, pitch = _split_shape(product)
    height = ceil_div(rows, ROWS_OF_SPLIT)
    if height > MOST_WAITING:
        return two_passes(product, permuted)
    args = (b, ldb, n, k, np.int32(height), "maxima", "column_exponents", "high", "low", np.int32(pitch))
    kernel, grid = f"split_once<{product.width}, {_bool(permuted)}>", (height * _strips(product),)
    return (Launch(kernel, grid, (SPLIT_ONCE_THREADS,), args, pdl=True),)


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _boxes_of_b(product: Product) -> tuple[Tensor, ...]:
    shape, box = _split_shape(product), (FUSED_DEPTH, BOX_COLUMNS)
    return tuple(Tensor(name, shape, box, "float16", 128) for name in ("high", "low"))


def _boxes_of_a(product: Product) -> Tensor:
    """A in float32, or its copy."""
    box, copied = (FUSED_ROWS, FUSED_DEPTH), needs_copy(product)
    pitch = rounded_up(product.k, 4) if copied else product.lda
    return Tensor("copy" if copied else "A", (product.m, product.k or 1), box, "float32", 128, pitch)


def fused(product: Product) -> Launch:
    """The product of A, in float32, with B's parts, by persistent clusters of two blocks."""
    tiles = ceil_div(product.m, FUSED_ROWS * CLUSTER) * ceil_div(product.n, FUSED_COLUMNS)
    args = (_boxes_of_a(product), *_boxes_of_b(product), *product.args, "row_exponents", "column_exponents")
    return Launch("multiply", (CLUSTER * min(tiles, SMS // CLUSTER),), (FUSED_THREADS,), args, FUSED_SHARED)


def fused_scratch(product: Product) -> dict[str, tuple[tuple[int, ...], str]]:
    shape = _split_shape(product)
    return {
        "row_exponents": ((product.m,), "int32"),
        "column_exponents": ((product.n,), "int32"),
        "maxima": ((_words(product),), "uint32"),
        "high": (shape, "uint16"),
        "low": (shape, "uint16"),
        **({"copy": ((product.m, rounded_up(product.k, 4)), "float32")} if needs_copy(product) else {}),
    }


#: Of turns.cuh: bytes of a stage and of what a block stores, the box of C that a warp stores.
STAGE_BYTES, OUT_BYTES, OUT_BOX = (2 * FUSED_ROWS + 2 * FUSED_COLUMNS) * 2 * FUSED_DEPTH, 8 * 2 * 2048, (16, 32)
#: Parts of k into which a product may be cut. All blocks are on the GPU at the same time then.
PARTS = (8, 4, 2)
#: Of k, what a part has at least.
SHORTEST = 64


def _tiles(product: Product, down: int) -> int:
    return ceil_div(product.m, FUSED_ROWS * down) * ceil_div(product.n, FUSED_COLUMNS)


def parts_of_k(product: Product) -> int:
    """Into how many parts k is cut: as many as there are SMs for."""
    fits = (p for p in PARTS if p * _tiles(product, 1) <= SMS and p * SHORTEST <= product.k)
    return next(fits, 1)


def split_rows(product: Product) -> Launch:
    """A's parts and its rows' exponents, and zeros where later launches count and compare."""
    _m, _n, k, _, a, lda, *_ = product.args
    zeros = np.int32(_words(product))
    args = (a, lda, k, "row_exponents", "maxima", zeros, "a_parts", np.int32(2 * rounded_up(product.k, FUSED_DEPTH)))
    return Launch(f"split_rows<{product.width}>", (product.m,), (PREPARE_THREADS,), args)


def _words(product: Product) -> int:
    """Words that start at zero: maxima of columns, counters of strips, counters of tiles."""
    return product.n + _strips(product) + _tiles(product, 1)


def tuned(product: Product, held: bool = False) -> Launch:
    """The product of A's parts with B's, by clusters of two blocks, or by blocks for parts of k.

    ``held``: A is in float32, and is split in registers.
    """
    split = parts_of_k(product)
    down = 1 if split > 1 else CLUSTER
    boxed = product.width == 4 and split == 1
    if held:
        a = _boxes_of_a(product)
    else:
        a = Tensor("a_parts", (product.m, 2 * rounded_up(product.k, FUSED_DEPTH)), (FUSED_ROWS, 64), "float16", 128)
    b = _boxes_of_b(product)
    c = Tensor("C", (product.m, product.n), OUT_BOX, "float32", 128, product.ldc) if boxed else b[0]
    partial = "partial" if split > 1 else "C"
    tiles, counters = _tiles(product, down), np.int32(product.n + _strips(product))
    return Launch(
        f"multiply<Left, {down}, {split}, {_bool(boxed)}>",
        (split * tiles if split > 1 else down * min(tiles, SMS // down),),
        (FUSED_THREADS,),
        (a, *b, c, *product.args, "row_exponents", "column_exponents", partial, "maxima", counters),
        FUSED_STAGES * STAGE_BYTES + OUT_BYTES,
        pdl=True,
    )


def tuned_scratch(product: Product) -> dict[str, tuple[tuple[int, ...], str]]:
    shape, split = _split_shape(product), parts_of_k(product)
    floats = split * _tiles(product, 1) * FUSED_ROWS * FUSED_COLUMNS
    return {
        "row_exponents": ((product.m,), "int32"),
        "column_exponents": ((product.n,), "int32"),
        "maxima": ((_words(product),), "uint32"),
        "a_parts": ((product.m, 2 * rounded_up(product.k, FUSED_DEPTH)), "uint16"),
        "high": (shape, "uint16"),
        "low": (shape, "uint16"),
        **({"partial": ((floats,), "float32")} if split > 1 else {}),
    }


#: Of one_launch.cuh: rows of A for each block.
ROWS_OF_BLOCK = 4


def one_launch(product: Product) -> tuple[Launch, ...]:
    """One launch for both factors, after one that sets the words to zero at which its blocks meet."""
    m, n, k, _, a, lda, b, ldb, *_ = product.args
    rows, pitch = _split_shape(product)
    height, depth = ceil_div(rows, ROWS_OF_SPLIT), 2 * rounded_up(product.k, FUSED_DEPTH)
    if height > MOST_WAITING:
        return (split_rows(product), *two_passes(product, permuted=False))
    of_a, words = ceil_div(product.m, ROWS_OF_BLOCK), _words(product)
    args = (a, lda, m, k, "row_exponents", "a_parts", np.int32(depth), np.int32(of_a), b, ldb, n, np.int32(height))
    return (
        Launch("zero_words", (ceil_div(words, PREPARE_THREADS),), (PREPARE_THREADS,), ("maxima", np.int32(words))),
        Launch(
            f"prepare_both<{product.width}>",
            (of_a + height * _strips(product),),
            (SPLIT_ONCE_THREADS,),
            (*args, "maxima", "column_exponents", "high", "low", np.int32(pitch)),
            pdl=True,
        ),
    )


def held_scratch(product: Product) -> dict[str, tuple[tuple[int, ...], str]]:
    partial = {name: value for name, value in tuned_scratch(product).items() if name == "partial"}
    return {**fused_scratch(product), **partial}


#: Of small.cuh: rows and columns of a tile, threads, bytes of the ring.
SMALL_ROWS, SMALL_COLUMNS, SMALL_THREADS, SMALL_SHARED = 64, 128, 288, 8 * 24 * 1024
#: Of one_block.cuh: columns of B, and rows of A, for each block.
STRIP, ROWS_BESIDE = 16, 8


def small_tiles(product: Product) -> tuple[Launch, ...]:
    """One launch splits both factors, a second has a block for each tile."""
    m, n, k, _, a, lda, b, ldb, *_ = product.args
    pitch, depth = _split_shape(product)[1], 2 * rounded_up(product.k, FUSED_DEPTH)
    strips = ceil_div(pitch, STRIP)
    of_a = (a, lda, m, k, "row_exponents", "a_parts", np.int32(depth), np.int32(strips))
    of_b = (b, ldb, n, "column_exponents", "high", "low", np.int32(pitch))
    boxes = Tensor("a_parts", (product.m, depth), (SMALL_ROWS, 2 * FUSED_DEPTH), "float16", 128)
    tiles = ceil_div(product.m, SMALL_ROWS) * ceil_div(product.n, SMALL_COLUMNS)
    args = (boxes, *_boxes_of_b(product), *product.args, "row_exponents", "column_exponents")
    grid = (strips + ceil_div(product.m, ROWS_BESIDE),)
    return (
        Launch(f"prepare_alone<{product.width}>", grid, (SPLIT_ONCE_THREADS,), (*of_a, *of_b)),
        Launch("multiply_small", (tiles,), (SMALL_THREADS,), args, SMALL_SHARED, pdl=True),
    )


def small_tiles_scratch(product: Product) -> dict[str, tuple[tuple[int, ...], str]]:
    return {name: value for name, value in tuned_scratch(product).items() if name not in ("maxima", "partial")}
