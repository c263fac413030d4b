"""The exercises and exhibits of the chapter on warp shuffles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.exercise import Claim, Exercise, Finding, exhibit_reader
from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div
from climb.bench.registry import load_ladder

HERE = Path(__file__).parent
FLOAT, WARP, THREADS = 4, 32, 256


#: The source of an exhibit of the chapter, by name.
exhibit = exhibit_reader(__file__)


def one_barrier() -> Claim:
    """Claim that no block passes more than one barrier."""

    def test(counters: Any) -> Finding:
        each = counters.barriers / int(np.prod(counters.grid))
        return Finding(each <= 1, f"{each:g} per block")

    return Claim("barriers", "at most one", test)


def _one_pass(name: str, source: str, kernel: str, chunk: int = THREADS, shared_mem: int = 0) -> Rung:
    """A rung of one launch of a tree, which leaves one sum per ``chunk`` floats."""

    def launches(size: Size) -> tuple[Launch, ...]:
        args = ("source", "sums", np.uint64(size["n"]))
        return (Launch(kernel, (ceil_div(size["n"], chunk),), (THREADS,), args, shared_mem),)

    def requires(size: Size) -> str | None:
        return None if size["chunk"] == chunk else f"its blocks sum {chunk} floats each"

    return Rung(name, f"one pass of {name}", launches, requires=requires, source=source)


def _reduction(name: str) -> str:
    """The path of a rung of the ladder ``reduction``, relative to this folder."""
    return f"../reduction/{load_ladder('reduction')[name].path.name}"


#: The first launch of the trees and of the shuffles alone, to count it on hardware, and the same trees with a block
#: size that is known only at run time. For ``climb profile`` with this module.
ladder = Ladder(
    Problem(
        name="tree_pass",
        title="Sums of chunks of n floats",
        size_keys=("n", "chunk"),
        arguments=(
            Argument("source", "float32", ("n",)),
            Argument("sums", "float32", (lambda size: ceil_div(size["n"], size["chunk"]),), role="output"),
        ),
        make_inputs=lambda size, rng: {"source": rng.random(size["n"], dtype=np.float32)},
        reference=lambda inputs, size: {
            "sums": np.add.reduceat(inputs["source"], np.arange(0, size["n"], size["chunk"]), dtype=np.float64)
        },
        tolerance=lambda size: 10 * 2.0**-24,  # a float passes at most nine additions
        flops=lambda size: size["n"],
        bytes=lambda size: FLOAT * (size["n"] + ceil_div(size["n"], size["chunk"])),
        headline=tuple({"n": 1 << 24, "chunk": chunk} for chunk in (THREADS, 2 * THREADS)),
        check=tuple({"n": n, "chunk": chunk} for n in (1, 1000, 5000) for chunk in (THREADS, 2 * THREADS)),
        parameters=("chunk",),
    ),
    HERE,
    rungs=(
        *(_one_pass(name, _reduction(name), f"sum_{name}") for name in ("interleaved", "non_divergent", "sequential")),
        *(_one_pass(name, _reduction(name), f"sum_{name}", 2 * THREADS) for name in ("first_add", "shuffle")),
        *(
            _one_pass(f"runtime_{name}", "../exhibits/runtime.cu", f"runtime_{name}", THREADS, FLOAT * THREADS)
            for name in ("interleaved", "non_divergent", "sequential")
        ),
    ),
)


def _blocks(size: Size) -> int:
    return ceil_div(size["n"], THREADS)


def _block_maxima(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    return {"maxima": np.maximum.reduceat(inputs["source"], np.arange(0, size["n"], THREADS))}


block_max = Exercise(
    name="block_max",
    problem=Problem(
        name="block_max",
        title="The largest float of each block",
        size_keys=("n",),
        arguments=(Argument("source", "float32", ("n",)), Argument("maxima", "float32", (_blocks,), "output")),
        make_inputs=lambda size, rng: {"source": rng.standard_normal(size["n"], dtype=np.float32) - 5},
        reference=_block_maxima,
        tolerance=lambda size: 0.0,  # one of the inputs
        flops=lambda size: size["n"],
        bytes=lambda size: FLOAT * (size["n"] + _blocks(size)),
        headline=(),
        check=(),
    ),
    launches=lambda size: (
        Launch("block_max", (_blocks(size),), (THREADS,), ("source", "maxima", np.int32(size["n"]))),
    ),
    sizes=({"n": 1}, {"n": 300}, {"n": 1000}),
    folder=HERE,
    claims=(one_barrier(),),
    hints=(
        "Within a warp, lanes can exchange registers without a barrier. How many values are left after each "
        "warp has found its own maximum?",
        "Let each warp reduce by shuffles, and let its lane 0 store the result in shared memory. After one "
        "barrier, the first warp reduces those eight values the same way.",
    ),
)

argmax = Exercise(
    name="argmax",
    problem=Problem(
        name="warp_argmax",
        title="Index of the largest of n floats",
        size_keys=("n",),
        arguments=(Argument("source", "float32", ("n",)), Argument("index", "int32", (lambda size: 1,), "output")),
        # Few different values, so that the largest occurs many times.
        make_inputs=lambda size, rng: {"source": rng.integers(-4, 5, size["n"]).astype(np.float32)},
        reference=lambda inputs, size: {"index": np.argmax(inputs["source"], keepdims=True).astype(np.int32)},
        tolerance=lambda size: 0.0,  # an integer
        flops=lambda size: size["n"],
        bytes=lambda size: FLOAT * (size["n"] + 1),
        headline=(),
        check=(),
    ),
    launches=lambda size: (Launch("warp_argmax", (1,), (WARP,), ("source", "index", np.int32(size["n"]))),),
    sizes=({"n": 5}, {"n": 33}, {"n": 500}),
    folder=HERE,
    hints=(
        "Two values belong together. Which of them is exchanged, and which one stays behind?",
        "Shuffle the index too, before any lane decides. Take the other pair if its value is larger, or if "
        "the values are equal and its index is smaller.",
    ),
)


def _warp_scans(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    padded = np.zeros(ceil_div(size["n"], WARP) * WARP)
    padded[: size["n"]] = inputs["source"]
    return {"sums": padded.reshape(-1, WARP).cumsum(axis=1).reshape(-1)[: size["n"]]}


scan = Exercise(
    name="scan",
    problem=Problem(
        name="warp_scan",
        title="Prefix sums within each warp",
        size_keys=("n",),
        arguments=(Argument("source", "float32", ("n",)), Argument("sums", "float32", ("n",), "output")),
        make_inputs=lambda size, rng: {"source": rng.integers(1, 100, size["n"]).astype(np.float32)},
        reference=_warp_scans,
        tolerance=lambda size: 0.0,  # sums of small whole numbers are exact in any order
        flops=lambda size: size["n"],
        bytes=lambda size: 2 * FLOAT * size["n"],
        headline=(),
        check=(),
    ),
    launches=lambda size: (
        Launch("warp_scan", (ceil_div(size["n"], 2 * WARP),), (2 * WARP,), ("source", "sums", np.int32(size["n"]))),
    ),
    sizes=({"n": 64}, {"n": 1}, {"n": 100}),
    folder=HERE,
    hints=(
        "What does `__shfl_up_sync` return in a lane that has no lane `offset` places below it? And which "
        "lanes take part after some have returned?",
        "Add what comes from a lower lane only if the lane's number is at least `offset`. Keep every lane until "
        "the end: give those beyond `n` a zero, and test `i < n` again before the store.",
    ),
)
