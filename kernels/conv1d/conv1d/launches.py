"""The launches of the rungs up to ``hoisted_bias``: a thread a channel, or a few, and how a block adds up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from climb.bench.problem import Launch, Size, ceil_div
from kernels.conv1d.conv1d import tuning
from kernels.conv1d.conv1d.problem import (
    FLOAT,
    MAX_EXTENT,
    MAX_GRID_Y,
    MAX_TAPS,
    MAX_THREADS,
    MAX_TILE,
    STAGED_BYTES,
    WARP,
)

#: Channels of a thread in the rungs that load straight into registers.
LANE_CHANNELS = 4
BIAS_THREADS = 256


def span(size: Size) -> int:
    """Floats of a row that a block stages: a tile with its neighbours, or all of a shorter row."""
    return min(size["l"], min(size["l"], MAX_TILE) + size["k"] - 1)


def grid(size: Size) -> tuple[int, int]:
    """Blocks over the output channels and over the tiles of a row; at least one of each."""
    return (max(1, size["o"]), max(1, ceil_div(size["l"], MAX_TILE)))


def row_width(size: Size) -> int:
    """Floats per load of the rows: four where a block stages whole rows, in all a multiple of four floats."""
    return 4 if span(size) == size["l"] and size["i"] * size["l"] % 4 == 0 else 1


def filter_width(size: Size) -> int:
    """Floats per load of the filters: four where the filters of every output channel start at 16 bytes."""
    return 4 if size["i"] * size["k"] % 4 == 0 else 1


def args(size: Size) -> tuple[Any, ...]:
    """Arguments of the kernels that add the bias themselves."""
    return ("input", "weight", "bias", "output", np.int32(size["i"]))


def requires(size: Size) -> str | None:
    """Return why a rung refuses this size, or None."""
    if size["k"] % 2 == 0 or size["k"] > MAX_TAPS:
        return (
            f"k must be odd, so that there are as many outputs as inputs, and at most {MAX_TAPS}, "
            "because the loop over the taps is unrolled"
        )
    if size["l"] > MAX_GRID_Y * MAX_TILE:
        return f"l may be at most {MAX_GRID_Y * MAX_TILE}, because a grid has at most {MAX_GRID_Y} blocks in y"
    if max(size["i"], size["o"]) > MAX_EXTENT:
        return f"i and o may be at most {MAX_EXTENT}, because channels are counted in 32 bits"
    return None


def _tree_threads(size: Size, in_shared: bool) -> int:
    """Threads of a block that ends in a tree: a power of two that covers the channels, as far as shared memory goes."""
    threads, most = WARP, MAX_THREADS
    if in_shared:
        most = min(most, STAGED_BYTES // (FLOAT * _padded(max(span(size), size["k"]), WARP)))
    while threads < size["i"] and 2 * threads <= most:
        threads *= 2
    return threads


def _padded(floats: int, every: int) -> int:
    """Floats of an array with one unused float after every ``every``."""
    return floats + ceil_div(floats, every)


def pad_every(floats: int) -> int:
    """After how many floats one is left unused, where a thread's rows take ``floats``; the kernels' pad_every."""
    return WARP if floats < WARP else 4 * ceil_div(floats, 4)


def _staged_floats(size: Size, rows: int, padded: int | None, separate: bool = False) -> int:
    """Floats of shared memory for the rows, padded every ``padded``, and the filters: in one buffer or in two."""
    of_rows = rows * span(size)
    of_rows = of_rows if padded is None else _padded(of_rows, padded)
    return of_rows + rows * size["k"] if separate else max(of_rows, rows * size["k"])


def naive(size: Size) -> tuple[Launch, ...]:
    """A block per output channel and tile, a thread per input channel."""
    kernel = f"conv1d_naive<{size['l']}, {size['k']}>"
    return (Launch(kernel, grid(size), (_tree_threads(size, in_shared=False),), args(size)),)


def staged(kernel: str, wide: bool, padded: bool) -> Callable[[Size], tuple[Launch, ...]]:
    """The rungs that stage in shared memory and end in a tree."""

    def launches(size: Size) -> tuple[Launch, ...]:
        shape = f"{size['l']}, {size['k']}" + (f", {row_width(size)}" if wide else "")
        threads = _tree_threads(size, in_shared=True)
        floats = _staged_floats(size, threads, pad_every(span(size)) if padded else None)
        return (Launch(f"{kernel}<{shape}>", grid(size), (threads,), args(size), FLOAT * floats),)

    return launches


def most_threads(channels: int) -> int:
    """Most threads of a block with ``channels`` channels a thread; the kernels' most_threads."""
    return min(MAX_THREADS, 2 * MAX_THREADS // channels)


def _with_atomics(kernel: str, size: Size, channels: int, arguments: str, separate: bool = False) -> tuple[Launch, ...]:
    """The launch that sets the outputs to the bias, then ``kernel`` with ``channels`` channels a thread."""
    floats = lambda threads: _staged_floats(  # noqa: E731
        size, threads * channels, pad_every(span(size) * channels), separate
    )
    threads = min(most_threads(channels), WARP * max(1, ceil_div(size["i"], WARP * channels)))
    while threads > WARP and FLOAT * floats(threads) > STAGED_BYTES:
        threads -= WARP
    blocks = max(1, ceil_div(size["o"] * size["l"], BIAS_THREADS))
    bias_args = ("bias", "output", np.int32(size["o"]), np.int32(size["l"]))
    name = f"{kernel}<{size['l']}, {size['k']}, {arguments}>"
    taken = ("input", "weight", "output", np.int32(size["i"]))
    return (
        Launch("conv1d_bias", (blocks,), (BIAS_THREADS,), bias_args),
        Launch(name, grid(size), (threads,), taken, FLOAT * floats(threads)),
    )


def shuffles(size: Size) -> tuple[Launch, ...]:
    """One channel a thread, sums by shuffles and atomics."""
    return _with_atomics("conv1d_shuffle", size, 1, str(row_width(size)))


def channels(size: Size) -> tuple[Launch, ...]:
    """Several channels a thread."""
    each = tuning.channels_of_thread(size)
    return _with_atomics("conv1d_channels", size, each, f"{row_width(size)}, {each}")


def wide_filters(kernel: str, separate: bool) -> Callable[[Size], tuple[Launch, ...]]:
    """Several channels a thread; filters are staged as float4s, in the rows' buffer or in a separate one."""

    def launches(size: Size) -> tuple[Launch, ...]:
        each = tuning.channels_of_thread(size)
        return _with_atomics(kernel, size, each, f"{row_width(size)}, {filter_width(size)}, {each}", separate)

    return launches


def _four_rows(size: Size) -> bool:
    """Return whether a lane's four rows may be loaded as float4s: a tile has complete rows, and each lane has four."""
    return size["l"] <= MAX_TILE and size["i"] % LANE_CHANNELS == 0


def registers(size: Size) -> tuple[Launch, ...]:
    """Four channels a thread, straight from global memory to registers."""
    threads = WARP * min(16, max(1, ceil_div(size["i"], WARP * LANE_CHANNELS)))
    kernel = f"conv1d_registers<{size['l']}, {size['k']}, {str(_four_rows(size)).lower()}>"
    return (Launch(kernel, grid(size), (threads,), args(size)),)


def most_warps(taps: int) -> int:
    """Most warps of a block whose filters fit into shared memory; the kernels' most_warps."""
    return min(8, max(1, (40 << 10) // (WARP * LANE_CHANNELS * taps * FLOAT)))


def transposed(kernel: str) -> Callable[[Size], tuple[Launch, ...]]:
    """The rungs in which a warp transposes its filters through shared memory."""

    def launches(size: Size) -> tuple[Launch, ...]:
        warps = min(most_warps(max(1, size["k"])), max(1, ceil_div(size["i"], WARP * LANE_CHANNELS)))
        widths = f"{4 if _four_rows(size) else 1}, {filter_width(size)}"
        name = f"{kernel}<{size['l']}, {size['k']}, {widths}>"
        return (Launch(name, grid(size), (WARP * warps,), args(size)),)

    return launches
