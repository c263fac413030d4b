"""The convolution layer in the layouts of the course report, int32, for several sizes of its chunks.

``input`` holds each map in chunks of side x side elements, one chunk after the other, and ``weights`` have the input
map as their outermost axis. ``chunk`` is the side; the report's conv1 has 64 chunks of 28 x 28, its conv2 one of 14.
A block has a thread for each element of a chunk, so the chunk is also the size of a block.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div
from kernels.conv_layers.convlayer.layer import CLEAR_BLOCKS, CONV1, CONV2, ELEMENT, MAX_MAPS
from kernels.conv_layers.convlayer.layer import reference as of_rows

#: Magnitudes that keep a sum of millions of products within 32 bits.
LARGEST = 20
CLEAR_THREADS = 256
#: Chunks with at least a warp and at most 1024 elements.
SIDES = (7, 8, 14, 16, 28, 32)
#: Bytes that the weights may take of a block's static shared memory; the piece takes part of the rest.
MOST_WEIGHTS = 32 * 1024


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    n, c_in, c_out, k = (size[key] for key in ("n", "c_in", "c_out", "k"))

    def draw(*shape: int) -> np.ndarray:
        return rng.integers(-LARGEST, LARGEST, shape, dtype=np.int32, endpoint=True)

    return {"input": draw(c_in, n * n), "weights": draw(c_in, c_out, k, k)}


def unchunked(chunks: np.ndarray, n: int, side: int) -> np.ndarray:
    """Maps (c_in, n, n) from maps in chunks (c_in, n * n) of side x side elements; ``side`` divides ``n``."""
    across = n // side
    apart = chunks.reshape(len(chunks), across, across, side, side)
    return np.ascontiguousarray(apart.transpose(0, 1, 3, 2, 4)).reshape(len(chunks), n, n)


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    if size["n"] % size["chunk"]:
        return {"output": np.zeros((size["c_out"], size["n"], size["n"]))}  # every rung refuses such a size
    maps = unchunked(inputs["input"], size["n"], size["chunk"])
    return of_rows({"input": maps, "weights": inputs["weights"].transpose(1, 0, 2, 3)}, size)


def _count(size: Size) -> int:
    n, c_in, c_out, k = (size[key] for key in ("n", "c_in", "c_out", "k"))
    return n * n * (c_in + c_out) + c_in * c_out * k * k


problem = Problem(
    name="report_layouts",
    title="Convolution layer in the report's layouts, int32",
    size_keys=("n", "c_in", "c_out", "k", "chunk"),
    arguments=(
        Argument("input", "int32", ("c_in", lambda size: size["n"] ** 2)),
        Argument("weights", "int32", ("c_in", "c_out", "k", "k")),
        Argument("output", "int32", ("c_out", "n", "n"), role="output"),
    ),
    make_inputs=_inputs,
    reference=_reference,
    tolerance=lambda size: 0.0,  # whole numbers
    flops=lambda size: 2 * size["n"] ** 2 * size["c_in"] * size["c_out"] * size["k"] ** 2,
    bytes=lambda size: ELEMENT * _count(size),
    headline=({**CONV1, "chunk": 28}, {**CONV2, "chunk": 14}),
    sweep=tuple({**CONV1, "chunk": side} for side in SIDES if side != 28),
    check=(
        {"n": 7, "c_in": 1, "c_out": 1, "k": 3, "chunk": 7},
        {"n": 16, "c_in": 3, "c_out": 5, "k": 3, "chunk": 8},
        {"n": 14, "c_in": 2, "c_out": 3, "k": 1, "chunk": 7},
        {"n": 28, "c_in": 2, "c_out": 3, "k": 3, "chunk": 14},
    ),
    parameters=("n", "chunk"),
)


def _requires(size: Size) -> str | None:
    if size["chunk"] not in SIDES:
        return f"chunk may be {', '.join(map(str, SIDES[:-1]))} or {SIDES[-1]}, because a thread has an element"
    if size["n"] % size["chunk"] or size["n"] == 0:
        return "n must be a multiple of chunk, because maps are stored in whole chunks"
    if size["k"] not in (1, 3):
        return "k may be 1 or 3, because the loops over the weights are unrolled"
    if max(size["c_in"], size["c_out"]) > MAX_MAPS:
        return f"c_in and c_out may be at most {MAX_MAPS}, because they are counted in blocks"
    return None


def _weights_fit(size: Size) -> str | None:
    if ELEMENT * size["c_out"] * size["k"] ** 2 > MOST_WEIGHTS:
        return f"the weights of an input map may be at most {MOST_WEIGHTS} bytes, because a block keeps them all"
    return _requires(size)


def _launches(kernel: str, pairs: bool) -> Callable[[Size], tuple[Launch, ...]]:
    def launches(size: Size) -> tuple[Launch, ...]:
        count, chunks = size["c_out"] * size["n"] ** 2, (size["n"] // size["chunk"]) ** 2
        clear = Launch(
            f"convlayer_clear<int, {CLEAR_THREADS}>",
            (min(CLEAR_BLOCKS, max(1, ceil_div(count, CLEAR_THREADS))),),
            (CLEAR_THREADS,),
            ("output", np.uint64(count)),
        )
        grid = (size["c_out"], chunks, size["c_in"]) if pairs else (chunks * size["c_in"],)
        shared = 0 if pairs else ELEMENT * size["c_out"] * size["k"] ** 2
        name = f"{kernel}<{size['k']}, {size['chunk']}>"
        args = ("input", "weights", "output", np.int32(size["n"]), np.int32(size["c_out"]))
        return (clear, Launch(name, grid, (size["chunk"] ** 2,), args, shared))

    return launches


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "single_thread_load",
            "conv1 of the report: thread 0 loads all weights of an input map",
            _launches("report_single_thread_load", pairs=False),
            requires=_weights_fit,
        ),
        Rung(
            "block_load",
            "all threads load the weights",
            _launches("report_block_load", pairs=False),
            requires=_weights_fit,
        ),
        Rung(
            "pairs",
            "conv2 of the report: a block for each pair of maps",
            _launches("report_pairs", pairs=True),
            requires=_requires,
            swept=False,
        ),
    ),
)
