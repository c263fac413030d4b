"""Write: fill an array with a pattern, nothing is read. Its rate is the ceiling of bytes that are only written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div

WORD = 4
THREADS = 256
#: The pattern's factor, the kernels' kOdd: Knuth's multiplicative hash, so that memory sees data and not one value.
ODD = 2654435761


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    return {"target": np.arange(size["n"], dtype=np.uint32) * np.uint32(ODD)}


def _launches(kernel: str, width: int) -> Callable[[Size], tuple[Launch, ...]]:
    def launches(size: Size) -> tuple[Launch, ...]:
        grid = (max(1, ceil_div(ceil_div(size["n"], width), THREADS)),)
        return (Launch(kernel, grid, (THREADS,), ("target", np.uint64(size["n"]))),)

    return launches


problem = Problem(
    name="write",
    title="Write a pattern of n words",
    size_keys=("n",),
    arguments=(Argument("target", "uint32", ("n",), role="output"),),
    make_inputs=lambda size, rng: {},
    reference=_reference,
    tolerance=lambda size: 0.0,  # exact integers
    flops=lambda size: 0,
    bytes=lambda size: WORD * size["n"],
    headline=({"n": 1 << 29},),
    # From less than the L2 cache holds to far more: what stays in the cache shows at the small sizes only.
    sweep=tuple({"n": 1 << power} for power in (20, 22, 24, 27)),
    check=({"n": 1}, {"n": 255}, {"n": 1024}, {"n": 4099}),
    parameters=("n",),
)

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung("scalar", "one word per thread", _launches("write_scalar", 1)),
        Rung("vectorised", "16 bytes per store", _launches("write_vectorised", 4), alignment={"target": 16}),
        Rung("evict_first", "evict-first stores", _launches("write_evict_first", 4), alignment={"target": 16}),
    ),
    ceiling="write_gb_s",
    # A rate is a slope: between these two sizes, what L2 still holds at the end cancels.
    ceiling_sizes=({"n": 1 << 27}, {"n": 1 << 29}),
)
