"""The exercises and exhibits of the chapter on sparsity."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from climb import load_ladder
from climb.bench.exercise import Exercise, exhibit_reader
from climb.bench.problem import Argument, Launch, Problem, Size
from kernels.sparsity import compression

HERE = Path(__file__).parent

#: The source of an exhibit of the chapter, by name.
exhibit = exhibit_reader(__file__)

_gemm = load_ladder("sparse_gemm")
#: The exhibit ``early`` as a rung of ``sparse_gemm``.
early = replace(_gemm, rungs=(replace(_gemm["wgmma"].rung, name="early", source="../exhibits/early.cu"),))["early"]


def _half(size: Size, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((size["m"], size["k"])).astype(np.float16)


def by_rows(places: np.ndarray) -> np.ndarray:
    """The metadata of kept places (m, k / 4, 2) by rows: uint16 (m, k / 16)."""
    nibbles = (places[:, :, 0] | places[:, :, 1] << np.uint32(2)).reshape(len(places), -1, 4)
    return np.bitwise_or.reduce(nibbles << np.arange(0, 16, 4, dtype=np.uint32), axis=2).astype(np.uint16)


def _places(rows: np.ndarray) -> np.ndarray:
    nibbles = rows[:, :, None] >> np.arange(0, 16, 4, dtype=np.uint16) & 15
    nibbles = nibbles.reshape(len(rows), -1).astype(np.uint32)
    return np.stack([nibbles & 3, nibbles >> 2], axis=-1)


words = Exercise(
    name="words",
    problem=Problem(
        name="words",
        title="Metadata in the order of lanes",
        size_keys=("m", "k"),
        arguments=(
            Argument("rows", "uint16", ("m", lambda size: size["k"] // 16)),
            Argument(
                "packed", "uint32", (lambda size: size["k"] // 64, lambda size: size["m"] // 16, lambda _: 32), "output"
            ),
        ),
        make_inputs=lambda size, rng: {"rows": by_rows(compression.keep(_half(size, rng)))},
        reference=lambda given, size: {"packed": compression.pack(_places(given["rows"]))},
        tolerance=lambda size: 0.0,  # moved bits
        flops=lambda size: 0,
        bytes=lambda size: size["m"] * size["k"] // 4,
        headline=(),
        check=(),
        parameters=("k",),
    ),
    launches=lambda size: (
        Launch("words", (size["k"] // 64, size["m"] // 16), (32,), ("rows", "packed", np.int32(size["k"] // 16))),
    ),
    sizes=({"m": 16, "k": 64}, {"m": 48, "k": 192}),
    folder=HERE,
    hints=(
        "Lanes come in groups of four. The number of the group is a row, and the place in the group is a piece of k.",
        "The lower half comes from the row of the group's number, the upper half from the row eight below it.",
    ),
)


def _stored(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    values, metadata = compression.compress(_half({"m": 16, "k": 64}, rng))
    b = rng.standard_normal((8, 64)).astype(np.float16)
    return {"values": values.view(np.uint32), "metadata": metadata.reshape(32), "b": b.view(np.uint32)}


def _product(given: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    A = compression.expand(given["values"].view(np.float16), given["metadata"].reshape(1, 1, 32))
    return {"c": A.astype(np.float64) @ given["b"].view(np.float16).astype(np.float64).T}


product = Exercise(
    name="product",
    problem=Problem(
        name="product",
        title="A sparse product of one warp",
        size_keys=("rows",),
        arguments=(
            Argument("values", "uint32", ("rows", lambda _: 16)),
            Argument("metadata", "uint32", (lambda _: 32,)),
            Argument("b", "uint32", (lambda _: 8, lambda _: 32)),
            Argument("c", "float32", ("rows", lambda _: 8), "output"),
        ),
        make_inputs=_stored,
        reference=_product,
        tolerance=lambda size: 2.0**-23 * 6,  # two instructions, each of which loses less than 2^-23 of its sum
        flops=lambda size: 16 * 8 * 64,
        bytes=lambda size: 4 * (16 * 16 + 32 + 8 * 32 + 16 * 8),
        headline=(),
        check=(),
    ),
    launches=lambda size: (Launch("product", (1,), (32,), ("values", "metadata", "b", "c")),),
    sizes=({"rows": 16},),
    folder=HERE,
    hints=(
        "The second product needs other elements of A and of B, and other metadata. Which of the three lie in another "
        "register, and which in the same register of another lane?",
        "In A and in B go on by 8 and by 16 pairs. The operand behind the metadata, the sparsity selector, is a "
        "constant: with 1, the tensor core takes the metadata of the other two lanes of each four.",
    ),
)
