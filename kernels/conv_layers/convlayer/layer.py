"""Common code of the ladders of the convolution layer: the problem in any type, the launches of its first rungs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div
from climb.bench.references import sum_of_magnitudes

#: Bytes of an element, of either type.
ELEMENT = 4
#: Pixels of a map are counted in ints; weights are unrolled.
MAX_N, MAX_K = 32768, 7
#: Blocks in y.
MAX_MAPS = 65535
#: VGG-16's thirteen 3 x 3 layers: (n, c_in, c_out) of each shape, and how many there are of it.
VGG = {
    (224, 3, 64): 1,
    (224, 64, 64): 1,
    (112, 64, 128): 1,
    (112, 128, 128): 1,
    (56, 128, 256): 1,
    (56, 256, 256): 2,
    (28, 256, 512): 1,
    (28, 512, 512): 2,
    (14, 512, 512): 3,
}
#: conv1 and conv2 of the course report, two of them.
CONV1 = {"n": 224, "c_in": 64, "c_out": 64, "k": 3}
CONV2 = {"n": 14, "c_in": 512, "c_out": 512, "k": 3}
CHECK = (
    {"n": 0, "c_in": 2, "c_out": 3, "k": 3},
    {"n": 5, "c_in": 0, "c_out": 2, "k": 3},
    {"n": 1, "c_in": 1, "c_out": 1, "k": 1},
    {"n": 4, "c_in": 3, "c_out": 2, "k": 2},
    {"n": 29, "c_in": 2, "c_out": 17, "k": 3},
    {"n": 6, "c_in": 9, "c_out": 66, "k": 5},
    # Enough input maps to be split into parts, with outputs that are and are not a multiple of four.
    {"n": 4, "c_in": 40, "c_out": 4, "k": 3},
    {"n": 5, "c_in": 37, "c_out": 3, "k": 3},
    {"n": 14, "c_in": 12, "c_out": 20, "k": 3},
)
#: Blocks that clear the outputs, the piece of a map that the report's conv1 and conv2 have in a block, and the threads
#: of a block with one output each.
CLEAR_BLOCKS, PIECE, SMALL_PIECE, THREADS = 1056, 28, 14, 128


def reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    """The layer in float64, one weight of all pairs of maps at a time; whole numbers stay exact below 2^53."""
    n, k = size["n"], size["k"]
    halo = k // 2
    weights = inputs["weights"].astype(np.float64)
    padded = np.pad(inputs["input"].astype(np.float64), ((0, 0), (halo, k - 1 - halo), (halo, k - 1 - halo)))
    output = np.zeros((size["c_out"], n * n))
    for down in range(k):
        for right in range(k):
            shifted = np.ascontiguousarray(padded[:, down : down + n, right : right + n]).reshape(size["c_in"], n * n)
            output += np.ascontiguousarray(weights[:, :, down, right]) @ shifted
    return {"output": output.reshape(size["c_out"], n, n)}


def make_problem(
    name: str,
    title: str,
    dtype: str,
    headline: tuple[Size, ...],
    values: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray],
    tolerance: Callable[[Size], float],
    check: tuple[Size, ...] = CHECK,
    sweep: tuple[Size, ...] = (),
) -> Problem:
    """The problem in one type; ``values`` draws the elements of an input of a shape."""

    def inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
        n, c_in, c_out, k = (size[key] for key in ("n", "c_in", "c_out", "k"))
        return {"input": values(rng, (c_in, n, n)), "weights": values(rng, (c_out, c_in, k, k))}

    def count(size: Size) -> int:
        n, c_in, c_out, k = (size[key] for key in ("n", "c_in", "c_out", "k"))
        return n * n * (c_in + c_out) + c_in * c_out * k * k

    return Problem(
        name=name,
        title=title,
        size_keys=("n", "c_in", "c_out", "k"),
        arguments=(
            Argument("input", dtype, ("c_in", "n", "n")),
            Argument("weights", dtype, ("c_out", "c_in", "k", "k")),
            Argument("output", dtype, ("c_out", "n", "n"), role="output"),
        ),
        make_inputs=inputs,
        reference=reference,
        reference_magnitude=sum_of_magnitudes(reference) if dtype == "float32" else None,
        tolerance=tolerance,
        # As everyone counts: k x k products for each output and input map, those with the zeros around a map included.
        flops=lambda size: 2 * size["n"] ** 2 * size["c_in"] * size["c_out"] * size["k"] ** 2,
        bytes=lambda size: ELEMENT * count(size),
        headline=headline,
        check=check,
        sweep=sweep,
        accepts_empty=True,
    )


def vgg() -> tuple[Size, ...]:
    """The nine shapes of VGG-16's layers, in their order."""
    return tuple({"n": n, "c_in": c_in, "c_out": c_out, "k": 3} for n, c_in, c_out in VGG)


def args(size: Size) -> tuple[Any, ...]:
    """The arguments of every kernel of the ladder."""
    return ("input", "weights", "output", *(np.int32(size[key]) for key in ("n", "c_in", "c_out")))


def requires(size: Size) -> str | None:
    """The demand of every rung: sizes whose positions are ints and whose maps are blocks."""
    if not 1 <= size["k"] <= MAX_K:
        return f"k may be from 1 to {MAX_K}, because the loops over the weights are unrolled"
    if size["n"] > MAX_N:
        return f"n may be at most {MAX_N}, because pixels are counted in 32 bits"
    if max(size["c_in"], size["c_out"]) > MAX_MAPS:
        return f"c_in and c_out may be at most {MAX_MAPS}, because a grid has at most {MAX_MAPS} blocks in y"
    return None


def _clear(kind: str, threads: int, size: Size) -> Launch:
    count = size["c_out"] * size["n"] ** 2
    blocks = min(CLEAR_BLOCKS, max(1, ceil_div(count, threads)))
    return Launch(f"convlayer_clear<{kind}, {threads}>", (blocks,), (threads,), ("output", np.uint64(count)))


def _map_atomics(kind: str) -> Callable[[Size], tuple[Launch, ...]]:
    def launches(size: Size) -> tuple[Launch, ...]:
        threads = PIECE**2
        grid = (max(1, ceil_div(size["n"], PIECE) ** 2), max(1, size["c_in"]))
        add = Launch(f"convlayer_map_atomics<{kind}, {size['k']}>", grid, (threads,), args(size))
        return (_clear(kind, threads, size), add)

    return launches


def _pair_atomics(kind: str) -> Callable[[Size], tuple[Launch, ...]]:
    def launches(size: Size) -> tuple[Launch, ...]:
        threads = SMALL_PIECE**2
        grid = (max(1, ceil_div(size["n"], SMALL_PIECE) ** 2 * size["c_in"]), max(1, size["c_out"]))
        add = Launch(f"convlayer_pair_atomics<{kind}, {size['k']}>", grid, (threads,), args(size))
        return (_clear(kind, threads, size), add)

    return launches


def _output_stationary(kind: str) -> Callable[[Size], tuple[Launch, ...]]:
    def launches(size: Size) -> tuple[Launch, ...]:
        grid = (max(1, ceil_div(size["n"] ** 2, THREADS)), max(1, size["c_out"]))
        return (Launch(f"convlayer_output_stationary<{kind}, {size['k']}>", grid, (THREADS,), args(size)),)

    return launches


def first_rungs(kind: str) -> tuple[Rung, ...]:
    """The report's two kernels, corrected, and the one that keeps its sum; ``kind`` is the C++ type."""
    return (
        Rung(
            "map_atomics",
            "conv1 of the report, corrected: a piece of one input map for all output maps",
            _map_atomics(kind),
            requires=requires,
            swept=False,
        ),
        Rung(
            "pair_atomics",
            "conv2 of the report, corrected: a block for each pair of maps",
            _pair_atomics(kind),
            requires=requires,
            swept=False,
        ),
        Rung(
            "output_stationary",
            "a thread keeps the sum of its output",
            _output_stationary(kind),
            requires=requires,
            swept=False,
        ),
    )
