"""One-dimensional convolution, a layer of a network at batch 1: many channels and short rows, so the bytes are weights.

``output[o, p] = bias[o] + sum over c, t of weight[o, c, t] * input[c, p + t - k // 2]``, with zeros outside the rows.
A rung may leave out the products with those zeros, so that a weight that is NaN or infinite and meets only them changes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench import libraries
from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Peer, Problem, Rung, Size, ceil_div

FLOAT = 4
WARP = 32
MAX_THREADS = 1024
#: Positions of a block, where a row has more: the kernels' kMaxTile.
MAX_TILE = 16
MAX_TAPS = 63
MAX_GRID_Y = 65535
#: Shared memory that every GPU gives a block unasked, less the 4 KB of the first rungs' tree.
STAGED_BYTES = (48 << 10) - FLOAT * MAX_THREADS
#: Channels and positions are ints in the kernels.
MAX_EXTENT = 1 << 30


def layer(i: int, o: int, l: int, k: int) -> dict[str, int]:  # noqa: E741
    """A size: ``i`` channels in, ``o`` channels out, rows of ``l``, ``k`` taps."""
    return {"i": i, "o": o, "l": l, "k": k}


#: The convolutions with stride 1 of Diffusion Policy's ConditionalUnet1D (github.com/real-stanford/diffusion_policy,
#: conditional_unet1d.py: down_dims 256, 512, 1024, kernel size 5), for 16 steps of an action of two numbers: how often
#: the network has each shape. Its two strided and two transposed convolutions are other problems.
UNET_COUNTS = (
    (layer(2, 256, 16, 5), 1),
    (layer(2, 256, 16, 1), 1),
    (layer(256, 256, 16, 5), 4),
    (layer(256, 512, 8, 5), 1),
    (layer(256, 512, 8, 1), 1),
    (layer(512, 512, 8, 5), 3),
    (layer(512, 1024, 4, 5), 1),
    (layer(512, 1024, 4, 1), 1),
    (layer(1024, 1024, 4, 5), 7),
    (layer(2048, 512, 4, 5), 1),
    (layer(2048, 512, 4, 1), 1),
    (layer(512, 512, 4, 5), 3),
    (layer(1024, 256, 8, 5), 1),
    (layer(1024, 256, 8, 1), 1),
    (layer(256, 256, 8, 5), 3),
    (layer(256, 2, 16, 1), 1),
)
UNET = tuple(size for size, _ in UNET_COUNTS)
#: The layer that the worklog tunes, and one with twice the channels in, as a decoder's concatenation has them.
HEADLINE = (layer(1024, 1024, 4, 5),)
DOUBLE = layer(2048, 1024, 4, 5)


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    i, o, l, k = (size[key] for key in "iolk")  # noqa: E741
    return {
        "input": rng.standard_normal((i, l), dtype=np.float32),
        "weight": rng.standard_normal((o, i, k), dtype=np.float32),
        "bias": rng.standard_normal(o, dtype=np.float32),
    }


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    reach = size["k"] // 2
    rows = np.pad(inputs["input"].astype(np.float64), ((0, 0), (reach, reach)))
    total = np.repeat(inputs["bias"].astype(np.float64)[:, None], size["l"], axis=1)
    for t in range(size["k"]):
        total += inputs["weight"][:, :, t].astype(np.float64) @ rows[:, t : t + size["l"]]
    return {"output": total}


problem = Problem(
    name="conv1d",
    title="1D convolution of a U-Net layer, float32",
    size_keys=("i", "o", "l", "k"),
    arguments=(
        Argument("input", "float32", ("i", "l")),
        Argument("weight", "float32", ("o", "i", "k")),
        Argument("bias", "float32", ("o",)),
        Argument("output", "float32", ("o", "l"), role="output"),
    ),
    make_inputs=_inputs,
    reference=_reference,
    # A sum of i * k products rounds as often, by at most 2^-24 of a partial sum; the errors add up like a random walk.
    tolerance=lambda size: 4 * 2.0**-24 * max(1.0, (size["i"] * size["k"]) ** 0.5),
    flops=lambda size: 2 * size["i"] * size["o"] * size["l"] * size["k"],
    bytes=lambda size: FLOAT * (size["o"] * size["i"] * size["k"] + (size["i"] + size["o"]) * size["l"] + size["o"]),
    headline=HEADLINE,
    sweep=(DOUBLE, *(size for size in UNET if size not in HEADLINE)),
    check=(
        layer(0, 3, 4, 5),
        layer(3, 0, 4, 5),
        layer(3, 2, 0, 5),
        layer(1, 1, 1, 1),
        layer(2, 5, 16, 5),
        layer(70, 3, 19, 5),
        layer(1100, 2, 4, 5),
        layer(131, 5, 4, 5),
        layer(136, 6, 4, 5),
    ),
    accepts_empty=True,
)


def span(size: Size) -> int:
    """The floats of a row that a block stages: a tile with its neighbours, or all of a shorter row."""
    return min(size["l"], min(size["l"], MAX_TILE) + size["k"] - 1)


def _grid(size: Size) -> tuple[int, int]:
    return (max(1, size["o"]), max(1, ceil_div(size["l"], MAX_TILE)))


def _width(size: Size) -> int:
    """Floats per load of the rows: four where a block stages whole rows, in all a multiple of four floats."""
    return 4 if span(size) == size["l"] and size["i"] * size["l"] % 4 == 0 else 1


def _filter_width(size: Size) -> int:
    """Floats per load of the filters: four where every output channel's start at a multiple of 16 bytes."""
    return 4 if size["i"] * size["k"] % 4 == 0 else 1


def _requires(size: Size) -> str | None:
    if size["k"] % 2 == 0 or size["k"] > MAX_TAPS:
        return (
            f"k must be odd, so that there are as many outputs as inputs, and at most {MAX_TAPS}, for taps are unrolled"
        )
    if size["l"] > MAX_GRID_Y * MAX_TILE:
        return f"l may be at most {MAX_GRID_Y * MAX_TILE}, for the grid has at most {MAX_GRID_Y} blocks in y"
    if max(size["i"], size["o"]) > MAX_EXTENT:
        return f"i and o may be at most {MAX_EXTENT}, for channels are counted in 32 bits"
    return None


# --- The first rungs: a thread a channel, or a few, and the block's sums. ---


def _tree_threads(size: Size, staged: bool) -> int:
    """Threads of a block that ends in a tree: a power of two that covers the channels, as far as shared memory goes."""
    threads = WARP
    most = MAX_THREADS
    if staged:
        most = min(most, STAGED_BYTES // (FLOAT * _padded(max(span(size), size["k"]), WARP)))
    while threads < size["i"] and 2 * threads <= most:
        threads *= 2
    return threads


def _padded(floats: int, every: int) -> int:
    """The floats that an array takes with one unused after every so many."""
    return floats + ceil_div(floats, every)


def pad_every(floats: int) -> int:
    """After how many floats one is left unused, where a thread's rows take so many; the kernels' pad_every."""
    return WARP if floats < WARP else 4 * ceil_div(floats, 4)


def _staged_floats(size: Size, rows: int, padded: int | None, apart: bool = False) -> int:
    """Floats of shared memory for the rows, padded every so many, and the filters: in one place, or ``apart``."""
    of_rows = rows * span(size)
    of_rows = of_rows if padded is None else _padded(of_rows, padded)
    return of_rows + rows * size["k"] if apart else max(of_rows, rows * size["k"])


def _args(size: Size) -> tuple[Any, ...]:
    return ("input", "weight", "bias", "output", np.int32(size["i"]))


def _unoptimised(size: Size) -> tuple[Launch, ...]:
    kernel = f"conv1d_unoptimised<{size['l']}, {size['k']}>"
    return (Launch(kernel, _grid(size), (_tree_threads(size, staged=False),), _args(size)),)


def _staged(kernel: str, wide: bool, padded: bool) -> Callable[[Size], tuple[Launch, ...]]:
    """The rungs that stage in shared memory and end in a tree."""

    def launches(size: Size) -> tuple[Launch, ...]:
        shape = f"{size['l']}, {size['k']}" + (f", {_width(size)}" if wide else "")
        threads = _tree_threads(size, staged=True)
        floats = _staged_floats(size, threads, pad_every(span(size)) if padded else None)
        return (Launch(f"{kernel}<{shape}>", _grid(size), (threads,), _args(size), FLOAT * floats),)

    return launches


def _bias_first(size: Size) -> Launch:
    args = ("bias", "output", np.int32(size["o"]), np.int32(size["l"]))
    return Launch("conv1d_bias", (max(1, ceil_div(size["o"] * size["l"], 256)),), (256,), args)


def most_threads(channels: int) -> int:
    """Threads of a block at most, with so many channels a thread: the kernels' kMaxThreads."""
    return min(MAX_THREADS, 2 * MAX_THREADS // channels)


def channels_launches(
    kernel: str, size: Size, channels: int, *, widths: str, named: bool = True, padded: bool = True, apart: bool = False
) -> tuple[Launch, ...]:
    """The bias, then ``kernel`` with so many channels a thread; ``widths`` are template arguments after the shape."""
    floats = lambda threads: _staged_floats(  # noqa: E731
        size, threads * channels, pad_every(span(size) * channels) if padded else None, apart
    )
    threads = min(most_threads(channels), WARP * max(1, ceil_div(size["i"], WARP * channels)))
    while threads > WARP and FLOAT * floats(threads) > STAGED_BYTES:
        threads -= WARP
    shape = f"{size['l']}, {size['k']}, {widths}" + (f", {channels}" if named else "")
    args = ("input", "weight", "output", np.int32(size["i"]))
    launch = Launch(f"{kernel}<{shape}>", _grid(size), (threads,), args, FLOAT * floats(threads))
    return (_bias_first(size), launch)


#: Channels a thread that were fastest for the shapes of the U-Net, (i, o, l, k): the sweep's record says so.
BEST_CHANNELS: dict[tuple[int, int, int, int], int] = {
    (1024, 1024, 4, 5): 2,
    (2048, 1024, 4, 5): 2,
    (256, 256, 16, 5): 1,
    (256, 512, 8, 5): 1,
    (256, 512, 8, 1): 1,
    (512, 512, 8, 5): 2,
    (512, 1024, 4, 5): 2,
    (512, 1024, 4, 1): 2,
    (2048, 512, 4, 5): 1,
    (2048, 512, 4, 1): 4,
    (512, 512, 4, 5): 1,
    (1024, 256, 8, 5): 2,
    (1024, 256, 8, 1): 2,
    (256, 256, 8, 5): 1,
    (256, 2, 16, 1): 1,
}


def best_channels(size: Size) -> int:
    """Channels a thread: the best of the sweep; elsewhere two for many channels, if their number is even, or one."""
    known = BEST_CHANNELS.get(tuple(size[key] for key in "iolk"))
    return known or (2 if size["i"] >= 512 and size["i"] % 2 == 0 else 1)


def _shuffles(size: Size) -> tuple[Launch, ...]:
    return channels_launches("conv1d_shuffles", size, 1, widths=str(_width(size)), named=False)


def _channels(size: Size) -> tuple[Launch, ...]:
    return channels_launches("conv1d_channels", size, best_channels(size), widths=str(_width(size)))


def _wide_weights(size: Size) -> tuple[Launch, ...]:
    widths = f"{_width(size)}, {_filter_width(size)}"
    return channels_launches("conv1d_wide_weights", size, best_channels(size), widths=widths)


def _two_stores(size: Size) -> tuple[Launch, ...]:
    widths = f"{_width(size)}, {_filter_width(size)}"
    return channels_launches("conv1d_two_stores", size, best_channels(size), widths=widths, apart=True)


# --- Straight to registers: a lane has four channels, a warp as many filters as it loads at once. ---

LANE_CHANNELS = 4


def _four_rows(size: Size) -> bool:
    """Whether a lane's four rows may be loaded as float4s: whole rows, and no lane has fewer."""
    return size["l"] <= MAX_TILE and size["i"] % LANE_CHANNELS == 0


def _registers(size: Size) -> tuple[Launch, ...]:
    threads = WARP * min(16, max(1, ceil_div(size["i"], WARP * LANE_CHANNELS)))
    kernel = f"conv1d_registers<{size['l']}, {size['k']}, {str(_four_rows(size)).lower()}>"
    return (Launch(kernel, _grid(size), (threads,), _args(size)),)


def most_warps(taps: int) -> int:
    """Warps of a block at most: as many as have room for their filters in shared memory; the kernels' most_warps."""
    return min(8, max(1, (40 << 10) // (WARP * LANE_CHANNELS * taps * FLOAT)))


def _turned(kernel: str) -> Callable[[Size], tuple[Launch, ...]]:
    """The rungs in which a warp turns its filters."""

    def launches(size: Size) -> tuple[Launch, ...]:
        warps = min(most_warps(max(1, size["k"])), max(1, ceil_div(size["i"], WARP * LANE_CHANNELS)))
        widths = f"{4 if _four_rows(size) else 1}, {_filter_width(size)}"
        name = f"{kernel}<{size['l']}, {size['k']}, {widths}>"
        return (Launch(name, _grid(size), (WARP * warps,), _args(size)),)

    return launches


# --- The block fitted to the layer. ---


@dataclass(frozen=True)
class Fit:
    """A block: teams, warps and output channels of a team, chunks that a warp loads at once, channels of a lane, and
    whether these lie 32 apart (in the rung in_flight)."""

    teams: int
    warps: int
    outputs: int
    groups: int
    channels: int
    apart: bool = False

    @property
    def covered(self) -> int:
        """Input channels that a team loads at once."""
        return self.warps * self.groups * self.channels * WARP

    def shared_bytes(self, size: Size) -> int:
        """Shared memory that its filters and its sums take at most."""
        sums = max(WARP, 2 * self.outputs * min(size["l"], MAX_TILE))
        return FLOAT * self.teams * self.warps * (self.outputs * WARP * self.channels * size["k"] + sums)


#: What was fastest for the shapes of the U-Net, (i, o, l, k), of those tried on an H200.
BEST_FITS: dict[tuple[int, int, int, int], Fit] = {
    (1024, 1024, 4, 5): Fit(2, 8, 1, 2, 2),
    (2048, 1024, 4, 5): Fit(1, 16, 1, 2, 2),
    (2, 256, 16, 5): Fit(1, 1, 1, 1, 1),
    (2, 256, 16, 1): Fit(1, 1, 2, 1, 1),
    (256, 256, 16, 5): Fit(1, 8, 2, 1, 1),
    (256, 512, 8, 5): Fit(1, 8, 1, 1, 1),
    (256, 512, 8, 1): Fit(1, 8, 2, 1, 1),
    (512, 512, 8, 5): Fit(1, 8, 1, 2, 1),
    (512, 1024, 4, 5): Fit(2, 2, 1, 4, 2),
    (512, 1024, 4, 1): Fit(1, 4, 4, 2, 2),
    (2048, 512, 4, 5): Fit(1, 16, 1, 2, 2),
    (2048, 512, 4, 1): Fit(1, 16, 2, 2, 2),
    (512, 512, 4, 5): Fit(1, 8, 1, 1, 2),
    (1024, 256, 8, 5): Fit(1, 16, 1, 2, 1),
    (1024, 256, 8, 1): Fit(1, 16, 1, 2, 1),
    (256, 256, 8, 5): Fit(1, 8, 1, 1, 1),
    (256, 2, 16, 1): Fit(1, 8, 1, 1, 1),
}


def fit(size: Size) -> Fit:
    """The block for a layer: the best that was tried, or by rule: one or two channels a lane and so many warps that all
    channels are loaded at once, as far as shared memory goes."""
    if known := BEST_FITS.get(tuple(size[key] for key in "iolk")):
        return known
    channels = 2 if size["i"] > 512 else 1
    groups = 2 if size["i"] > 256 else 1
    warps = min(16, max(1, ceil_div(size["i"], WARP * channels * groups)))
    while warps > 1 and Fit(1, warps, 1, groups, channels).shared_bytes(size) > 48 << 10:
        warps //= 2
    return Fit(1, warps, 1, groups, channels)


def _fit_launch(kernel: str, size: Size, block: Fit, *more: int | str, row_floats: int, shared_mem: int = 0) -> Launch:
    """A launch with this block. Rows are loaded as float4s where they are whole and ``row_floats`` a multiple of four;
    ``more`` are template arguments after those of the block."""
    whole = size["l"] <= MAX_TILE and row_floats % 4 == 0 and size["i"] % block.channels == 0
    shape = (size["l"], size["k"], 4 if whole else 1, _filter_width(size))
    of_block = (block.teams, block.warps, block.outputs, block.groups, block.channels)
    name = f"{kernel}<{', '.join(map(str, (*shape, *of_block, *more)))}>"
    outputs, tiles = _grid(size)
    grid = (ceil_div(outputs, block.teams * block.outputs), tiles)
    return Launch(name, grid, (WARP * block.teams * block.warps,), _args(size), shared_mem)


def fitted(size: Size, block: Fit) -> Launch:
    """The launch of the rung fitted with this block."""
    return _fit_launch("conv1d_fitted", size, block, row_floats=block.channels * size["l"])


# --- The same with its filters in shared memory while they are on their way. ---

SMS = 132
#: Shared memory of a multiprocessor of compute capability 9.0, and what the system takes of it for each block.
SHARED_OF_SM, RESERVED = 228 << 10, 1 << 10
MAX_SHARED = 227 << 10
BEST_IN_FLIGHT: dict[tuple[int, int, int, int], Fit] = {
    (1024, 1024, 4, 5): Fit(1, 8, 1, 1, 4, True),
    (2048, 1024, 4, 5): Fit(1, 16, 2, 1, 4, True),
    (2, 256, 16, 5): Fit(1, 1, 2, 1, 1),
    (2, 256, 16, 1): Fit(1, 1, 1, 1, 1),
    (256, 256, 16, 5): Fit(1, 8, 2, 1, 1),
    (256, 512, 8, 5): Fit(1, 4, 1, 1, 2, True),
    (256, 512, 8, 1): Fit(1, 4, 1, 1, 2, True),
    (512, 512, 8, 5): Fit(1, 8, 1, 2, 1),
    (512, 1024, 4, 5): Fit(2, 4, 1, 1, 4, True),
    (512, 1024, 4, 1): Fit(1, 8, 4, 1, 2, True),
    (2048, 512, 4, 5): Fit(1, 8, 1, 1, 4, True),
    (2048, 512, 4, 1): Fit(1, 16, 4, 2, 2, True),
    (512, 512, 4, 5): Fit(1, 8, 1, 2, 1),
    (1024, 256, 8, 5): Fit(1, 16, 1, 1, 2, True),
    (1024, 256, 8, 1): Fit(1, 16, 2, 1, 2, True),
    (256, 256, 8, 5): Fit(1, 8, 1, 1, 1),
    (256, 2, 16, 1): Fit(1, 4, 1, 1, 2, True),
}
#: The same for the rung in_order, where it is another: several output channels a block, one behind the other.
BEST_IN_ORDER: dict[tuple[int, int, int, int], Fit] = {
    (1024, 1024, 4, 5): Fit(1, 8, 4, 1, 4, True),
}

#: And for the rung inside, which has less to do once the filters are there.
BEST_INSIDE: dict[tuple[int, int, int, int], Fit] = {
    (1024, 1024, 4, 5): Fit(1, 8, 1, 2, 2),
    (2048, 1024, 4, 5): Fit(2, 4, 1, 4, 2),
    (2048, 512, 4, 5): Fit(2, 8, 1, 2, 2),
}


def staged_bytes(size: Size, block: Fit) -> int:
    """Dynamic shared memory of a block: all pieces of the filters that its warps load at once."""
    pieces = block.teams * block.warps * block.groups * block.outputs
    return FLOAT * pieces * WARP * block.channels * size["k"]


def blocks_each(size: Size, block: Fit) -> int:
    """Blocks that an SM is to hold at once: its share of the grid, as far as threads and shared memory go."""
    threads = WARP * block.teams * block.warps
    share = ceil_div(max(1, size["o"]) // (block.teams * block.outputs) or 1, SMS)
    sums = FLOAT * block.teams * block.warps * max(WARP, 2 * block.outputs * min(size["l"], MAX_TILE))
    room = SHARED_OF_SM // (staged_bytes(size, block) + sums + RESERVED)
    return max(1, min(share, room, 1280 // threads, 16))


def in_flight_fit(size: Size) -> Fit:
    """The block for a layer: the best that was tried, or four warps an output channel with four channels a lane."""
    if known := BEST_IN_FLIGHT.get(tuple(size[key] for key in "iolk")):
        return known
    channels = 4 if size["i"] > 256 else 1
    warps = 4
    groups = min(4, max(1, ceil_div(size["i"], WARP * channels * warps)))
    while groups * warps > 1 and staged_bytes(size, Fit(1, warps, 1, groups, channels)) > MAX_SHARED // 2:
        groups, warps = (groups // 2, warps) if groups > 1 else (1, warps // 2)
    return Fit(1, warps, 1, groups, channels)


def in_order_fit(size: Size) -> Fit:
    """The block of the rung in_order for a layer."""
    return BEST_IN_ORDER.get(tuple(size[key] for key in "iolk")) or in_flight_fit(size)


def inside_fit(size: Size) -> Fit:
    """The block of the rung inside for a layer."""
    return BEST_INSIDE.get(tuple(size[key] for key in "iolk")) or in_flight_fit(size)


def in_flight(size: Size, block: Fit, kernel: str = "conv1d_in_flight") -> Launch:
    """The launch of the rung in_flight, or of one that came after it, with this block."""
    more = (blocks_each(size, block), str(block.apart).lower())
    shared_mem = staged_bytes(size, block)
    return _fit_launch(kernel, size, block, *more, row_floats=size["l"], shared_mem=shared_mem)


def _cudnn(tf32: bool) -> Callable[[dict[str, Any], Size], Callable[[], None]]:
    def prepare(arrays: dict[str, Any], size: Size) -> Callable[[], None]:
        i, o, l, k = (size[key] for key in "iolk")  # noqa: E741
        return libraries.cudnn_layer(
            arrays["input"].reshape(1, i, 1, l),
            arrays["weight"].reshape(o, i, 1, k),
            arrays["bias"],
            arrays["output"].reshape(1, o, 1, l),
            padding=(0, k // 2),
            tf32=tf32,
        )

    return prepare


ALGORITHM = "cudnn_convolution, benchmark mode, then the bias"

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "unoptimised",
            "a thread a channel, a tree a block",
            _unoptimised,
            requires=_requires,
            swept=False,
        ),
        Rung(
            "coalesced",
            "rows and filters through shared memory",
            _staged("conv1d_coalesced", wide=False, padded=False),
            requires=_requires,
            swept=False,
        ),
        Rung(
            "float4",
            "four floats of the rows per load",
            _staged("conv1d_float4", wide=True, padded=False),
            alignment={"input": 16},
            requires=_requires,
            swept=False,
        ),
        Rung(
            "padded",
            "one unused float after every 32",
            _staged("conv1d_padded", wide=True, padded=True),
            alignment={"input": 16},
            requires=_requires,
            swept=False,
        ),
        Rung(
            "shuffles",
            "sums by shuffles and atomics",
            _shuffles,
            alignment={"input": 16},
            requires=_requires,
            swept=False,
        ),
        Rung(
            "channels",
            "several channels a thread",
            _channels,
            alignment={"input": 16},
            requires=_requires,
            swept=False,
        ),
        Rung(
            "wide_weights",
            "four floats of the filters per load",
            _wide_weights,
            alignment={"input": 16, "weight": 16},
            requires=_requires,
            swept=False,
        ),
        Rung(
            "two_stores",
            "rows and filters on their way at once",
            _two_stores,
            alignment={"input": 16, "weight": 16},
            requires=_requires,
            swept=False,
        ),
        Rung(
            "registers",
            "rows and filters straight to registers",
            _registers,
            alignment={"input": 16, "weight": 16},
            requires=_requires,
            swept=False,
        ),
        Rung(
            "turned",
            "filters loaded as they lie, turned by the warp",
            _turned("conv1d_turned"),
            alignment={"input": 16, "weight": 16},
            requires=_requires,
            swept=False,
        ),
        Rung(
            "evict_first",
            "filters give way first in the caches",
            _turned("conv1d_evict_first"),
            alignment={"input": 16, "weight": 16},
            requires=_requires,
            swept=False,
        ),
        Rung(
            "bias_first",
            "the bias is asked for first",
            _turned("conv1d_bias_first"),
            alignment={"input": 16, "weight": 16},
            requires=_requires,
            swept=False,
        ),
        Rung(
            "fitted",
            "the block fitted to the layer",
            lambda size: (fitted(size, fit(size)),),
            alignment={"input": 16, "weight": 16},
            requires=_requires,
            swept=False,
        ),
        Rung(
            "in_flight",
            "filters on their way without registers",
            lambda size: (in_flight(size, in_flight_fit(size)),),
            alignment={"input": 16, "weight": 16},
            requires=_requires,
            swept=False,
        ),
        Rung(
            "in_order",
            "worked on while those behind are on their way",
            lambda size: (in_flight(size, in_order_fit(size), "conv1d_in_order"),),
            alignment={"input": 16, "weight": 16},
            requires=_requires,
            swept=False,
        ),
        Rung(
            "inside",
            "no products with what lies beyond the row",
            lambda size: (in_flight(size, inside_fit(size), "conv1d_inside"),),
            alignment={"input": 16, "weight": 16},
            requires=_requires,
        ),
    ),
    peers=(
        Peer("cuDNN fp32", _cudnn(tf32=False), libraries.cudnn(ALGORITHM, "fp32")),
        # TF32 rounds each factor to 11 bits: a relative error of 2^-11 for each product, and they average out.
        Peer("cuDNN TF32", _cudnn(tf32=True), libraries.cudnn(ALGORITHM, "TF32"), tolerance=lambda size: 2.0**-10),
    ),
)
