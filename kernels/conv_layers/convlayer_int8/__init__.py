"""The convolution layer in int32 by 8-bit products of tensor cores: exact, and fast where the numbers are small.

The numbers of the course report fit in 8 bits: -20 to 20 here, and any from -128 to 127 are multiplied by one product.
Larger ones are taken apart into four digits. What overflows is lost as int32 loses it, modulo 2^32.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from climb import load_ladder
from climb.bench.ladder import Ladder
from climb.bench.problem import Launch, Rung, Size, ceil_div
from kernels.conv_layers.convlayer.layer import CONV1, CONV2
from kernels.conv_layers.convlayer.layer import requires as any_taps

OF_INTEGERS = load_ladder("convlayer_int")
#: The kernel's kOuts, kSide, kThreads and its shared memory in bytes.
OUTS, SIDE, THREADS = 64, 8, 128
BYTES = 4 * (OUTS * (32 * 9 + 4) + 4 * (SIDE + 2) ** 2 * (32 // 4 + 4))

problem = replace(
    OF_INTEGERS.problem,
    name="convlayer_int8",
    title="Convolution layer, int32 by 8-bit products",
    operations=lambda size: {"tensor": {"int8": OF_INTEGERS.problem.flops(size)}},
    headline=(CONV1, CONV2),
    sweep=(),
    check=(
        {"n": 0, "c_in": 4, "c_out": 3, "k": 3},
        {"n": 5, "c_in": 0, "c_out": 2, "k": 3},
        {"n": 1, "c_in": 1, "c_out": 1, "k": 3},
        {"n": 3, "c_in": 4, "c_out": 2, "k": 1},
        {"n": 9, "c_in": 35, "c_out": 3, "k": 3},
        {"n": 5, "c_in": 4, "c_out": 66, "k": 3},
    ),
)


def _requires(size: Size) -> str | None:
    return any_taps(size) or (None if size["k"] == 3 else "k must be 3, because the nine taps are unrolled")


def _launches(size: Size) -> tuple[Launch, ...]:
    grid = (max(1, ceil_div(size["n"], SIDE) ** 2), max(1, ceil_div(size["c_out"], OUTS)))
    extents = (np.int32(size[key]) for key in ("n", "c_in", "c_out"))
    return (Launch("convlayer_int8", grid, (THREADS,), ("input", "weights", "output", *extents), BYTES),)


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(Rung("mma", "8-bit digits", _launches, requires=_requires, capability="8.0"),),
)
