"""The exercises and the exhibit of the chapter on occupancy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.exercise import Claim, Exercise, Finding, exhibit_reader
from climb.bench.machine_code import opcodes
from climb.bench.problem import Argument, Launch, Problem, Size, ceil_div
from climb.toolchain.occupancy import kernel_occupancy

HERE = Path(__file__).parent
THREADS, PIECE, EACH = 128, 2048, 4
FACTOR = np.float32(0.5)
#: Blocks that must fit on an SM in the first exercise: compute capability 9.0 has 64 warps, or 16 blocks of 4.
BLOCKS = 16


#: The source of an exhibit of the chapter, by name.
exhibit = exhibit_reader(__file__)


def loads_in_a_row(compiled: Any, kernel: str) -> int:
    """The most loads from global memory between two stores in the kernel's machine code: how many a thread can have in
    flight."""
    most = run = 0
    for opcode in opcodes(compiled, kernel, "LDG|STG"):
        run = run + 1 if "LDG" in opcode else 0
        most = max(most, run)
    return most


def _arguments() -> tuple[Argument, ...]:
    return (Argument("source", "float32", ("n",)), Argument("target", "float32", ("n",), "output"))


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"source": rng.random(size["n"], dtype=np.float32)}


def _means(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    pieces = [inputs["source"][i : i + PIECE].astype(np.float64) for i in range(0, size["n"], PIECE)]
    padded = [np.pad(piece, 1, mode="edge") for piece in pieces]
    return {"target": np.concatenate([(p[:-2] + p[1:-1] + p[2:]) / 3 for p in padded])}


def _fits(compiled: Any) -> Finding:
    blocks = kernel_occupancy(compiled, "smooth", THREADS).blocks
    return Finding(blocks >= BLOCKS, f"there is room for {blocks}")


def _in_flight(compiled: Any) -> Finding:
    found = loads_in_a_row(compiled, "scale")
    return Finding(found >= EACH, f"at most {found} in a row")


smooth = Exercise(
    name="smooth",
    problem=Problem(
        name="smooth",
        title="Means of three neighbours, piece by piece",
        size_keys=("n",),
        arguments=_arguments(),
        make_inputs=_inputs,
        reference=_means,
        tolerance=lambda size: 1e-6,  # two sums and a quotient in float32
        flops=lambda size: 3 * size["n"],
        bytes=lambda size: 8 * size["n"],
        headline=(),
        check=(),
    ),
    launches=lambda size: (
        Launch("smooth", (ceil_div(size["n"], PIECE),), (THREADS,), ("source", "target", np.int32(size["n"]))),
    ),
    sizes=({"n": 1}, {"n": 2049}, {"n": 6000}),
    folder=HERE,
    builds=(Claim("blocks on an SM of compute capability 9.0", f"at least {BLOCKS}", _fits),),
    hints=(
        "What limits the blocks on an SM here? Divide the shared memory of an SM by that of a block.",
        "The second array holds values that only the thread that made them reads. Where can such a value go at once?",
    ),
)

scale = Exercise(
    name="scale",
    problem=Problem(
        name="scale",
        title="Multiply by a factor",
        size_keys=("n",),
        arguments=_arguments(),
        make_inputs=_inputs,
        reference=lambda inputs, size: {"target": FACTOR * inputs["source"]},
        tolerance=lambda size: 0.0,  # one product, rounded once
        flops=lambda size: size["n"],
        bytes=lambda size: 8 * size["n"],
        headline=(),
        check=(),
    ),
    launches=lambda size: (
        Launch(
            "scale",
            (ceil_div(32 * ceil_div(size["n"], 32 * EACH), THREADS),),
            (THREADS,),
            ("source", "target", FACTOR, np.int32(size["n"])),
        ),
    ),
    sizes=({"n": 1}, {"n": 129}, {"n": 3000}),
    folder=HERE,
    builds=(Claim("loads before the first store", f"at least {EACH}", _in_flight),),
    hints=(
        "The compiler may not move a load before a store that might write to the same bytes. Which line has both?",
        "Split the loop in two: first load all four values into a small array, then store all four.",
    ),
)
