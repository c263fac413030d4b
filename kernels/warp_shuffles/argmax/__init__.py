"""Argmax: the index of the largest of n floats, the first one among equals, as in NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.libraries import cub, frameworks
from climb.bench.problem import Argument, Launch, Peer, Problem, Rung, Size, ceil_div

FLOAT, INDEX = 4, 8
#: Threads of a block and floats that it compares; the kernels' kThreads and kChunk.
THREADS = 1024
CHUNK = THREADS * 8 * 4
QUAD_ALIGNED = {"source": 16}
#: An index has 32 bits beside the 32 of the float's key.
MAX_FLOATS = 1 << 32

problem = Problem(
    name="argmax",
    title="Index of the largest of n floats",
    size_keys=("n",),
    arguments=(
        Argument("source", "float32", ("n",)),
        Argument("index", "int64", (lambda size: 1,), role="output"),
    ),
    make_inputs=lambda size, rng: {"source": rng.standard_normal(size["n"], dtype=np.float32)},
    reference=lambda inputs, size: {"index": np.argmax(inputs["source"], keepdims=True)},
    tolerance=lambda size: 0.0,  # an integer
    flops=lambda size: size["n"],
    operations=lambda size: {"fp32": size["n"]},
    bytes=lambda size: FLOAT * size["n"] + INDEX,
    headline=({"n": 1 << 28},),
    check=({"n": 1}, {"n": 33}, {"n": 1000}, {"n": CHUNK}, {"n": 2 * CHUNK + 77}),
)


def _blocks(size: Size) -> int:
    return ceil_div(size["n"], CHUNK)


def _two_pass(size: Size) -> tuple[Launch, ...]:
    return (
        Launch("argmax_two_pass", (_blocks(size),), (THREADS,), ("source", "bests", np.uint64(size["n"]))),
        Launch("argmax_finish", (1,), (THREADS,), ("bests", "index", np.uint32(_blocks(size)))),
    )


def _last_block(size: Size) -> tuple[Launch, ...]:
    args = ("source", "bests", "index", np.uint64(size["n"]))
    return (Launch("argmax_last_block", (_blocks(size),), (THREADS,), args),)


def _requires(size: Size) -> str | None:
    return None if size["n"] <= MAX_FLOATS else f"n may be at most {MAX_FLOATS}, because an index is kept in 32 bits"


def _cub(arrays: dict[str, Any], size: Size):
    return cub.cupy_reduction(arrays["source"], "argmax", arrays["index"])


def _torch(arrays: dict[str, Any], size: Size):
    import torch

    source, index = torch.from_dlpack(arrays["source"]), torch.from_dlpack(arrays["index"])
    return lambda: torch.argmax(source, dim=0, keepdim=True, out=index)


def _rung(name: str, idea: str, launches) -> Rung:
    return Rung(
        name,
        idea,
        launches,
        alignment=QUAD_ALIGNED,
        requires=_requires,
        workspace=lambda size: {"bests": ((_blocks(size),), "uint64")},
    )


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        _rung("two_pass", "value and index in one 64-bit word", _two_pass),
        _rung("last_block", "one launch; the last block compares", _last_block),
    ),
    peers=(
        Peer("CUB", _cub, cub.inside_cupy("DeviceReduce::ArgMax", "fp32")),
        Peer("PyTorch", _torch, frameworks.pytorch("torch.argmax", "fp32")),
    ),
)
