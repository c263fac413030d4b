"""Sparse products of tiles in shared memory, again and again: how fast wgmma.sp is where nothing else is to be done.

The ladder ``tensor_f16`` measures dense products in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, Tensor
from kernels.sparsity import compression

#: Sums of a block, k of a slab, steps after which sums start anew: as in ``pipe.cuh``.
HIGH, WIDE, SLAB, CHAIN = 128, 256, 64, 64
THREADS, ALIGNMENT = 256, 1024
SMS = 132
#: Instructions that a block makes in a step: two warpgroups, two of 32 of k each.
INSTRUCTIONS = 4


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    dense = rng.standard_normal((HIGH * size["tiles"], SLAB)).astype(np.float16)
    values, metadata = compression.compress(dense)
    return {"values": values, "metadata": metadata, "B": rng.standard_normal((SLAB, WIDE)).astype(np.float16)}


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    A = compression.expand(inputs["values"], inputs["metadata"])
    stored = compression.expand(np.ones_like(inputs["values"]), inputs["metadata"]) != 0
    return {"C": ((size["steps"] - 1) % CHAIN + 1) * compression.product(A, stored, inputs["B"])}


def _flops(size: Size) -> int:
    return HIGH * WIDE * SLAB * size["tiles"] * size["steps"]


problem = Problem(
    name="sparse_pipe",
    title="Tensor cores, 2:4 sparse float16: the same products again and again",
    size_keys=("tiles", "steps"),
    arguments=(
        Argument("values", "float16", (lambda size: HIGH * size["tiles"], lambda _: SLAB // 2)),
        Argument("metadata", "uint32", (lambda _: 1, lambda size: HIGH // 16 * size["tiles"], lambda _: 32)),
        Argument("B", "float16", (lambda _: SLAB, lambda _: WIDE)),
        Argument("C", "float32", (lambda size: HIGH * size["tiles"], lambda _: WIDE), role="output"),
    ),
    make_inputs=_inputs,
    reference=_reference,
    # Two instructions a step, each of which loses less than 2^-23 of its sum.
    tolerance=lambda size: 2.0**-23 * (4 + 2 * min(size["steps"], CHAIN)),
    flops=_flops,
    operations=lambda size: {"tensor": {"f16": _flops(size)}},
    bytes=lambda size: HIGH * SLAB * size["tiles"] * 9 // 8 + 2 * SLAB * WIDE + 4 * HIGH * WIDE * size["tiles"],
    # One block on each SM, for about a millisecond, in which clocks settle.
    headline=({"tiles": SMS, "steps": 4096},),
    check=({"tiles": 2, "steps": 2}, {"tiles": 1, "steps": 3}),
    parameters=("tiles", "steps"),
)


def _launches(name: str) -> Callable[[Size], tuple[Launch, ...]]:
    def launches(size: Size) -> tuple[Launch, ...]:
        values = Tensor("values", (HIGH * size["tiles"], SLAB // 2), (HIGH, SLAB // 2), "float16", swizzle=64)
        B = Tensor("B", (SLAB, WIDE), (SLAB, 64), "float16", swizzle=128)
        shared = SLAB * (HIGH + 2 * WIDE) + ALIGNMENT  # the barrier has the last piece
        args = (values, "metadata", B, "C", np.int32(size["steps"]))
        return (Launch(f"sparse_pipe_{name}", (size["tiles"],), (THREADS,), args, shared),)

    return launches


def _rung(name: str, idea: str) -> Rung:
    return Rung(
        name,
        idea,
        _launches(name),
        alignment={"values": 16, "metadata": 16, "B": 16},
        capability="9.0",
        arch="sm_90a",
    )


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        _rung("shared", "A and B from shared memory"),
        _rung("registers", "A from registers"),
    ),
    regimes=("cold",),
)
