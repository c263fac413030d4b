"""The conv1d rung with several channels a thread, swept over a U-Net's layers; and what two of its ideas are worth.

``kernels/conv1d/conv1d`` says what is computed. Here the number of channels a thread is part of the size.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div
from climb.bench.references import sum_of_magnitudes

FLOAT = 4
WARP = 32
CHANNELS = (1, 2, 4, 8, 16)
#: Positions of a block, where a row has more: the kernels' kMaxTile.
MAX_TILE = 16
MAX_TAPS = 63
MAX_GRID_Y = 65535
#: Shared memory that every GPU gives a block unasked, less the 4 KB of a tree.
STAGED_BYTES = (48 << 10) - 4096
#: The layers, channels in, channels out, length, taps: those of ../conv1d with more than a warp of channels in.
LAYERS = (
    (1024, 1024, 4, 5),
    (2048, 1024, 4, 5),
    (256, 256, 16, 5),
    (256, 512, 8, 5),
    (256, 512, 8, 1),
    (512, 512, 8, 5),
    (512, 1024, 4, 5),
    (512, 1024, 4, 1),
    (2048, 512, 4, 5),
    (2048, 512, 4, 1),
    (512, 512, 4, 5),
    (1024, 256, 8, 5),
    (1024, 256, 8, 1),
    (256, 256, 8, 5),
    (256, 2, 16, 1),
)
HEADLINES = 1


#: Numbers of channels a thread for the other layers: more never paid.
FEW = (1, 2, 4)


def sizes(layers: tuple[tuple[int, int, int, int], ...], numbers: tuple[int, ...]) -> tuple[dict[str, int], ...]:
    """Each layer with each number of channels a thread."""
    return tuple(
        {"i": i, "o": o, "l": length, "k": taps, "channels": channels}
        for i, o, length, taps in layers
        for channels in numbers
    )


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "input": rng.standard_normal((size["i"], size["l"]), dtype=np.float32),
        "weight": rng.standard_normal((size["o"], size["i"], size["k"]), dtype=np.float32),
        "bias": rng.standard_normal(size["o"], dtype=np.float32),
    }


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    reach = size["k"] // 2
    rows = np.pad(inputs["input"].astype(np.float64), ((0, 0), (reach, reach)))
    windows = np.lib.stride_tricks.sliding_window_view(rows, size["k"], axis=1)  # (i, l, k)
    total = np.tensordot(inputs["weight"].astype(np.float64), windows, axes=((1, 2), (0, 2)))
    return {"output": total + inputs["bias"].astype(np.float64)[:, None]}


problem = Problem(
    name="conv1d_channels",
    title="1D convolution with several channels a thread",
    size_keys=("i", "o", "l", "k", "channels"),
    arguments=(
        Argument("input", "float32", ("i", "l")),
        Argument("weight", "float32", ("o", "i", "k")),
        Argument("bias", "float32", ("o",)),
        Argument("output", "float32", ("o", "l"), role="output"),
    ),
    make_inputs=_inputs,
    reference=_reference,
    reference_magnitude=sum_of_magnitudes(_reference),
    # A sum of i * k products rounds as often, by at most 2^-24 of a partial sum; the errors add up like a random walk.
    tolerance=lambda size: 4 * 2.0**-24 * max(1.0, (size["i"] * size["k"]) ** 0.5),
    flops=lambda size: 2 * size["i"] * size["o"] * size["l"] * size["k"],
    bytes=lambda size: FLOAT * (size["o"] * size["i"] * size["k"] + (size["i"] + size["o"]) * size["l"] + size["o"]),
    headline=sizes(LAYERS[:HEADLINES], CHANNELS),
    sweep=sizes(LAYERS[HEADLINES:], FEW),
    check=(
        {"i": 0, "o": 3, "l": 4, "k": 5, "channels": 2},
        {"i": 70, "o": 3, "l": 19, "k": 3, "channels": 2},
        {"i": 304, "o": 2, "l": 4, "k": 5, "channels": 8},
        {"i": 136, "o": 4, "l": 4, "k": 5, "channels": 4},
    ),
    parameters=("channels",),
    accepts_empty=True,
)


def _span(size: Size) -> int:
    return min(size["l"], min(size["l"], MAX_TILE) + size["k"] - 1)


def _grid(size: Size) -> tuple[int, int]:
    return (max(1, size["o"]), max(1, ceil_div(size["l"], MAX_TILE)))


def _requires(size: Size) -> str | None:
    if size["channels"] not in CHANNELS:
        return f"channels must be one of {', '.join(map(str, CHANNELS))}"
    if size["i"] % size["channels"]:
        return (
            "i must be a multiple of channels, because the compiler reads the filters of a thread's channels together, "
            "and shared memory has none for missing channels"
        )
    if size["k"] % 2 == 0 or size["k"] > MAX_TAPS:
        return f"k must be odd and at most {MAX_TAPS}, because the loop over the taps is unrolled"
    if size["l"] > MAX_GRID_Y * MAX_TILE:
        return f"l may be at most {MAX_GRID_Y * MAX_TILE}, because a grid has at most {MAX_GRID_Y} blocks in y"
    return None


def _kernel(size: Size, name: str) -> str:
    wide = _span(size) == size["l"] and size["i"] * size["l"] % 4 == 0
    return f"{name}<{size['l']}, {size['k']}, {4 if wide else 1}, {size['channels']}>"


def _shared_bytes(size: Size, threads: int) -> int:
    rows = threads * size["channels"]
    staged = rows * _span(size)
    of_thread = _span(size) * size["channels"]
    padding = ceil_div(staged, WARP if of_thread < WARP else 4 * ceil_div(of_thread, 4))
    return FLOAT * max(staged + padding, rows * size["k"])


def _threads(size: Size) -> int:
    """A warp for each 32 * channels channels, as far as the kernel's registers and shared memory go."""
    threads = WARP * max(1, ceil_div(size["i"], WARP * size["channels"]))
    threads = min(threads, 1024, 2048 // size["channels"])
    while threads > WARP and _shared_bytes(size, threads) > STAGED_BYTES:
        threads -= WARP
    return threads


def _with_atomics(name: str) -> Callable[[Size], tuple[Launch, ...]]:
    def launches(size: Size) -> tuple[Launch, ...]:
        blocks = max(1, ceil_div(size["o"] * size["l"], 256))
        first = Launch("conv1d_bias", (blocks,), (256,), ("bias", "output", np.int32(size["o"]), np.int32(size["l"])))
        args = ("input", "weight", "output", np.int32(size["i"]))
        threads = _threads(size)
        return (first, Launch(_kernel(size, name), _grid(size), (threads,), args, _shared_bytes(size, threads)))

    return launches


def _with_tree(size: Size) -> tuple[Launch, ...]:
    threads = _threads(size)
    while threads & (threads - 1):  # a tree halves: down to a power of two
        threads &= threads - 1
    args = ("input", "weight", "bias", "output", np.int32(size["i"]))
    kernel = _kernel(size, "conv1d_tree")
    return (Launch(kernel, _grid(size), (threads,), args, _shared_bytes(size, threads)),)


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "channels",
            "several channels a thread",
            _with_atomics("conv1d_channels"),
            alignment={"input": 16},
            requires=_requires,
            source="../conv1d/06_channels.cu",
        ),
        Rung(
            "unpadded",
            "bank conflicts brought back",
            _with_atomics("conv1d_unpadded"),
            alignment={"input": 16},
            requires=_requires,
            swept=False,
        ),
        Rung(
            "tree",
            "the tree over the block brought back",
            _with_tree,
            alignment={"input": 16},
            requires=_requires,
            swept=False,
        ),
    ),
)
