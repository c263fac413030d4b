"""Accurate sum: n floats added as if they were doubles, for the same bytes as a sum in floats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.libraries import cub, frameworks
from climb.bench.problem import Argument, Launch, Peer, Problem, Rung, Size, ceil_div
from climb.bench.references import sum_of_magnitudes

FLOAT, DOUBLE = 4, 8
#: Threads of a block and floats that it sums; the kernels' kThreads and kChunk.
THREADS = 1024
CHUNK = THREADS * 8 * 4
QUAD_ALIGNED = {"source": 16}


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    return {"total": np.sum(inputs["source"], dtype=np.float64, keepdims=True)}


problem = Problem(
    name="accurate_sum",
    title="Sum n floats as accurately as doubles do",
    size_keys=("n",),
    arguments=(
        Argument("source", "float32", ("n",)),
        Argument("total", "float64", (lambda size: 1,), role="output"),
    ),
    make_inputs=lambda size, rng: {"source": rng.random(size["n"], dtype=np.float32)},
    reference=_reference,
    reference_magnitude=sum_of_magnitudes(_reference),
    # The rung with two floats keeps what rounding loses, 2^-24 of a partial sum, with an error of 2^-24 of that. A
    # float passes at most 64 additions. One float left out of 2^28 would be an error of 2^-28.
    tolerance=lambda size: 64 * 2.0**-48,
    flops=lambda size: size["n"],
    operations=lambda size: {"fp32": size["n"]},
    bytes=lambda size: FLOAT * size["n"] + DOUBLE,
    headline=({"n": 1 << 28},),
    check=({"n": 0}, {"n": 1}, {"n": 33}, {"n": 1000}, {"n": CHUNK}, {"n": 2 * CHUNK + 77}),
    accepts_empty=True,
)


def _blocks(size: Size) -> int:
    return max(1, ceil_div(size["n"], CHUNK))


def _rung(name: str, idea: str, words: int) -> Rung:
    """A rung of one launch; each block leaves ``words`` doubles, or pairs of floats, for the last block."""

    def launches(size: Size) -> tuple[Launch, ...]:
        args = ("source", "sums", "total", np.uint64(size["n"]))
        return (Launch(f"sum_{name}", (_blocks(size),), (THREADS,), args),)

    return Rung(
        name,
        idea,
        launches,
        alignment=QUAD_ALIGNED,
        workspace=lambda size: {"sums": ((words * _blocks(size),), "float64")},
    )


def _compute(arrays: dict[str, Any], size: Size):
    return cub.reduction(arrays["source"], "PLUS", arrays["total"])


def _cupy(arrays: dict[str, Any], size: Size):
    source, total = arrays["source"], arrays["total"].reshape(())
    return lambda: source.sum(dtype=np.float64, out=total)


def _torch(arrays: dict[str, Any], size: Size):
    import torch

    source, total = torch.from_dlpack(arrays["source"]), torch.from_dlpack(arrays["total"])
    return lambda: torch.sum(source, dim=0, keepdim=True, dtype=torch.float64, out=total)


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        _rung("float64", "floats added as doubles", 1),
        _rung("compensated", "two floats in place of a double", 1),
    ),
    peers=(
        Peer("CUB", _compute, cub.compute("DeviceReduce::Reduce, float64 accumulator", "fp64 sum of fp32")),
        Peer("CuPy", _cupy, frameworks.cupy("cupy.sum, dtype=float64", "fp64 sum of fp32")),
        Peer("PyTorch", _torch, frameworks.pytorch("torch.sum, dtype=float64", "fp64 sum of fp32")),
    ),
)
