"""The launches of the rungs for single samples: by atomics, and with a thread, a warp or a block for each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from climb.bench.problem import Launch, Size, ceil_div
from kernels.classifier.classifier import tuning
from kernels.classifier.classifier.problem import MAX_ATOMICS, MAX_EXTENT, MAX_GRID_Y, WARP
from kernels.classifier.classifier.tuning import Shape, packs_of, width

#: The rungs' kTile, and threads of their blocks: by atomics, with a thread or a warp per row, with the input in shared
#: memory, in the second pass of split_k.
TILE = 32
ATOMIC_THREADS, THREADS, SHARED_THREADS, SECOND_THREADS = 1024, 128, 256, 128
#: Rows that a warp takes at once in ``several_rows``.
ROWS = 4


def args(size: Size) -> tuple[Any, ...]:
    """Arguments of every first launch."""
    return ("weights", "input", "output", np.int32(size["inputs"]), np.int32(size["outputs"]))


def extents_fit(size: Size) -> str | None:
    """Return why every rung refuses this size, or None."""
    if max(size["inputs"], size["outputs"]) > MAX_EXTENT:
        return f"inputs and outputs may be at most {MAX_EXTENT}, because positions in a row are 32-bit"
    if size["batch"] > MAX_GRID_Y:
        return f"batch may be at most {MAX_GRID_Y}, the most blocks in y and z"
    return None


def atomics_fit(outputs_per_block: int) -> Callable[[Size], str | None]:
    """Return a check that says why the rungs with an atomic per product refuse a size, or None."""

    def requires(size: Size) -> str | None:
        products = size["inputs"] * size["outputs"] * size["batch"]
        if products > MAX_ATOMICS:
            return f"{products} products; at most {MAX_ATOMICS}, because more would take far too long"
        if ceil_div(size["outputs"], outputs_per_block) > MAX_GRID_Y:
            most = MAX_GRID_Y * outputs_per_block
            return f"outputs may be at most {most}, because a grid has at most {MAX_GRID_Y} blocks in y"
        return extents_fit(size)

    return requires


def with_atomics(
    kernel: str, inputs_per_block: int, outputs_per_block: int, kind: str = "float"
) -> Callable[[Size], tuple[Launch, ...]]:
    """Zero the output, of C++ type ``kind``; then a grid over inputs, outputs and batch adds to it."""

    def launches(size: Size) -> tuple[Launch, ...]:
        n, threads = size["outputs"] * size["batch"], (ATOMIC_THREADS,)
        across = max(1, ceil_div(size["inputs"], inputs_per_block))
        grid = (across, ceil_div(size["outputs"], outputs_per_block), size["batch"])
        zero = f"zero_output<{ATOMIC_THREADS}, {kind}>"
        return (
            Launch(zero, (ceil_div(n, ATOMIC_THREADS),), threads, ("output", np.uint64(n))),
            Launch(kernel, grid, threads, args(size)),
        )

    return launches


def rows(kernel: str, threads: int, rows_per_block: int, packed: bool = True) -> Callable[[Size], tuple[Launch, ...]]:
    """A grid over the rows and the batch; a ``packed`` kernel takes the floats of a load as template argument."""

    def launches(size: Size) -> tuple[Launch, ...]:
        name = f"{kernel}<{width(size)}>" if packed else kernel
        return (Launch(name, (ceil_div(size["outputs"], rows_per_block), size["batch"]), (threads,), args(size)),)

    return launches


def row_block_launch(kernel: str, size: Size, shape: Shape) -> Launch:
    """A block of this shape per output and sample."""
    name = f"{kernel}<{width(size)}, {shape.threads}, {shape.unroll}>"
    return Launch(name, (size["outputs"], size["batch"]), (shape.threads,), args(size))


def row_blocks(kernel: str) -> Callable[[Size], tuple[Launch, ...]]:
    """A block per output and sample, of the shape that is chosen for the row."""
    return lambda size: (row_block_launch(kernel, size, tuning.choose("row_block", packs_of(size))),)


def no_bounds_launch(size: Size, shape: Shape) -> Launch:
    """A block of this shape per output and sample, without bounds where it covers a row exactly."""
    exact = str(shape.covered == packs_of(size)).lower()
    name = f"classifier_no_bounds<{width(size)}, {shape.threads}, {shape.unroll}, {exact}>"
    return Launch(name, (size["outputs"], size["batch"]), (shape.threads,), args(size))


def no_bounds(size: Size) -> tuple[Launch, ...]:
    """A block per output and sample, of the shape that is chosen for the row."""
    return (no_bounds_launch(size, tuning.choose("no_bounds", packs_of(size))),)


def _pieces(size: Size) -> int:
    """Blocks per row: one where the rows keep the SMs busy, otherwise one for each round of a block."""
    if size["outputs"] * size["batch"] >= tuning.SMS * tuning.BLOCKS_PER_SM:
        return 1
    return max(1, ceil_div(packs_of(size), tuning.choose("row_block", packs_of(size)).covered))


def split_k(size: Size) -> tuple[Launch, ...]:
    """A block per piece of a row; where there are several, a second pass adds up their sums."""
    shape = tuning.choose("row_block", packs_of(size))
    pieces, n = _pieces(size), size["outputs"] * size["batch"]
    each = packs_of(size) if pieces == 1 else shape.covered
    weights, given, output, *extents = args(size)
    name = f"classifier_split_k<{width(size)}, {shape.threads}, {shape.unroll}>"
    taken = (weights, given, output if pieces == 1 else "sums", *extents, np.int32(each))
    first = Launch(name, (size["outputs"], pieces, size["batch"]), (shape.threads,), taken)
    if pieces == 1:
        return (first,)
    blocks = (ceil_div(n, SECOND_THREADS // WARP),)
    last_args = ("sums", "output", np.uint64(n), np.int32(pieces))
    return (first, Launch("classifier_split_k_sum", blocks, (SECOND_THREADS,), last_args))


def split_k_sums(size: Size) -> Mapping[str, tuple[tuple[int, ...], str]]:
    """Scratch of ``split_k``: a sum for each piece of each output."""
    pieces = _pieces(size)
    return {"sums": ((size["batch"] * size["outputs"] * pieces,), "float32")} if pieces > 1 else {}


def split_k_fits(size: Size) -> str | None:
    """Return why ``split_k`` refuses this size, or None."""
    if _pieces(size) > MAX_GRID_Y:
        return f"its rows have more than {MAX_GRID_Y} pieces, the most blocks in y"
    return extents_fit(size)
