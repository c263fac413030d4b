"""Occupancy and bandwidth: a copy with more or fewer warps on an SM, and more or fewer bytes in flight per thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div
from climb.toolchain.occupancy import refusal

FLOAT, QUAD = 4, 16
N = 1 << 26
#: Threads per block and bytes of dynamic shared memory per block. The kernels do not use that memory; it only keeps
#: further blocks off an SM of compute capability 9.0, which then holds 16, 9, 4, 2 or 1 block of 4 warps.
LIMITED = tuple((128, shared) for shared in (0, 24 << 10, 48 << 10, 100 << 10, 200 << 10))
BLOCKS = ((32, 0), (1024, 0))


def _size(threads: int, shared: int, n: int = N) -> dict[str, int]:
    return {"n": n, "threads": threads, "shared": shared}


def demand(size: Size) -> str | None:
    """Return why a block of this size cannot be launched, or None."""
    return refusal(size["threads"], size["shared"])


def _launches(kernel: str, floats: int) -> Callable[[Size], tuple[Launch, ...]]:
    def launches(size: Size) -> tuple[Launch, ...]:
        # Groups of 32 threads, each with its own run of the array: the last group must be whole.
        groups = max(1, ceil_div(size["n"], 32 * floats))
        grid = (ceil_div(32 * groups, size["threads"]),)
        args = ("source", "target", np.uint64(size["n"]))
        return (Launch(kernel, grid, (size["threads"],), args, shared_mem=size["shared"]),)

    return launches


problem = Problem(
    name="occupancy",
    title="Copy n floats with a given block size and shared memory",
    size_keys=("n", "threads", "shared"),
    arguments=(
        Argument("source", "float32", ("n",)),
        Argument("target", "float32", ("n",), role="output"),
    ),
    make_inputs=lambda size, rng: {"source": rng.random(size["n"], dtype=np.float32)},
    reference=lambda inputs, size: {"target": inputs["source"]},
    tolerance=lambda size: 0.0,  # a copy is bit-exact
    flops=lambda size: 0,
    bytes=lambda size: 2 * FLOAT * size["n"],
    # 2^26 floats are 512 MiB in and out, far above the L2 cache.
    headline=(_size(*LIMITED[0]), _size(*LIMITED[-1])),
    sweep=tuple(_size(*limits) for limits in (*LIMITED[1:-1], *BLOCKS)),
    check=tuple(
        _size(threads, shared, n)
        for n, threads, shared in ((1, 32, 0), (3, 128, 100), (127, 33, 0), (1026, 1, 48 << 10), (5000, 1000, 0),
                                   (4099, 128, 200 << 10))
    ),
    parameters=("threads", "shared"),
    may_be_zero=("shared",),
    accepts_empty=True,
)  # fmt: skip

ALIGNED = {"source": QUAD, "target": QUAD}


def _rung(name: str, idea: str, floats: int, aligned: bool = False) -> Rung:
    alignment = ALIGNED if aligned else {}
    return Rung(name, idea, _launches(f"copy_{name}", floats), alignment=alignment, requires=demand)


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        _rung("one_float", "4 bytes in flight per thread", 1),
        _rung("four_floats", "four loads of 4 bytes", 4),
        _rung("one_quad", "one load of 16 bytes", 4, aligned=True),
        _rung("four_quads", "four loads of 16 bytes", 16, aligned=True),
        _rung("eight_quads", "eight loads of 16 bytes", 32, aligned=True),
        _rung("released", "eight loads, registers for all of them", 32, aligned=True),
    ),
)
