"""saxpy: z = a x + y on n floats. Two arrays read, one written: how wide should an access be?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.libraries import cublas, frameworks
from climb.bench.problem import Argument, Launch, Peer, Problem, Rung, Size, ceil_div
from climb.bench.references import sum_of_magnitudes

FLOAT = 4
A = np.float32(2.5)
THREADS = 256
#: float4 per thread of unrolled, and floats per thread of four_scalars; the kernels' kUnroll.
UNROLLED_QUADS, UNROLLED_SCALARS = 2, 4


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {name: rng.random(size["n"], dtype=np.float32) for name in ("x", "y")}


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    return {"z": float(A) * inputs["x"].astype(np.float64) + inputs["y"]}


problem = Problem(
    name="saxpy",
    title="z = a x + y on n floats",
    size_keys=("n",),
    arguments=(
        Argument("x", "float32", ("n",)),
        Argument("y", "float32", ("n",)),
        Argument("z", "float32", ("n",), role="output"),
    ),
    make_inputs=_inputs,
    reference=_reference,
    reference_magnitude=sum_of_magnitudes(_reference),
    # Both terms are positive, so no rounded value exceeds the result: one rounding with FMA, two without.
    tolerance=lambda size: 2 * 2.0**-24,
    flops=lambda size: 2 * size["n"],
    bytes=lambda size: 3 * FLOAT * size["n"],
    headline=({"n": 1 << 28},),
    # From one block's worth to a sixteenth of the headline: latency, then the L2 cache, then memory.
    sweep=tuple({"n": 1 << power} for power in (14, 17, 20, 22, 24)),
    check=({"n": 1}, {"n": 3}, {"n": 127}, {"n": 1024}, {"n": 4099}, {"n": 10007}),
    accepts_empty=True,
)


def _launches(kernel: str, elements_per_thread: int) -> Callable[[Size], tuple[Launch, ...]]:
    def launches(size: Size) -> tuple[Launch, ...]:
        grid = (max(1, ceil_div(size["n"], THREADS * elements_per_thread)),)
        return (Launch(kernel, grid, (THREADS,), (A, "x", "y", "z", np.uint64(size["n"]))),)

    return launches


def _cublas(arrays: dict[str, Any], size: Size):
    """cuBLAS adds to y in place: the first call, which is verified, copies y to z first; later calls only add to z."""
    x, y, z = (arrays[name] for name in ("x", "y", "z"))
    add = cublas.saxpy(float(A), x, z)
    fresh = [True]

    def enqueue() -> None:
        if fresh:
            z[...] = y
            fresh.clear()
        add()

    return enqueue


def _torch(arrays: dict[str, Any], size: Size):
    import torch

    x, y, z = (torch.from_dlpack(arrays[name]) for name in ("x", "y", "z"))
    return lambda: torch.add(y, x, alpha=float(A), out=z)


def _aligned(to: int) -> dict[str, int]:
    return dict.fromkeys(("x", "y", "z"), to)


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung("scalar", "one element per thread", _launches("saxpy_scalar", 1)),
        Rung("float2", "8 bytes per access", _launches("saxpy_float2", 2), alignment=_aligned(8)),
        Rung("float4", "16 bytes per access", _launches("saxpy_float4", 4), alignment=_aligned(16)),
        Rung(
            "unrolled",
            "two 16-byte loads of each array in flight",
            _launches("saxpy_unrolled", 4 * UNROLLED_QUADS),
            alignment=_aligned(16),
        ),
        Rung(
            "four_scalars",
            "four 4-byte loads of each array in flight",
            _launches("saxpy_four_scalars", UNROLLED_SCALARS),
        ),
    ),
    peers=(
        Peer("cuBLAS saxpy", _cublas, cublas.cublas("cublasSaxpy, y in place", "fp32")),
        Peer("PyTorch add", _torch, frameworks.pytorch("torch.add(y, x, alpha=a, out=z)", "fp32")),
    ),
)
