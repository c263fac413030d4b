"""2:4 pruning by magnitude: a matrix of halves becomes values and metadata, the format of ``sparse_gemm``.

Of each four neighbours in a row the two of largest magnitude stay, of equal ones the first. Infinity is larger than
every number, and NaN larger than infinity, so neither is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div
from kernels.sparsity.compression import ROWS, SLAB, compress

HALF = 2
#: Halves that a thread of the first rung prunes, and a warp of the second.
PIECE, WARP_PIECE = 16, ROWS * SLAB
THREADS = 256


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Normal numbers rounded to few digits, so that there are equal magnitudes among four."""
    dense = rng.standard_normal((size["m"], size["k"]), dtype=np.float32)
    return {"dense": (np.round(dense * 16) / 16).astype(np.float16)}


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    values, metadata = compress(inputs["dense"])
    return {"values": values, "metadata": metadata}


problem = Problem(
    name="prune",
    title="2:4 pruning and compression, float16",
    size_keys=("m", "k"),
    arguments=(
        Argument("dense", "float16", ("m", "k")),
        Argument("values", "float16", ("m", lambda size: size["k"] // 2), role="output"),
        Argument(
            "metadata",
            "uint32",
            (lambda size: size["k"] // SLAB, lambda size: size["m"] // ROWS, lambda _: 32),
            role="output",
        ),
    ),
    make_inputs=_inputs,
    reference=_reference,
    tolerance=lambda size: 0.0,  # moved bits
    flops=lambda size: 0,
    bytes=lambda size: size["m"] * size["k"] * HALF + size["m"] * size["k"] // 2 * HALF + size["m"] * size["k"] // 8,
    headline=({"m": 8192, "k": 8192},),
    sweep=({"m": 4096, "k": 4096}, {"m": 1024, "k": 1024}),
    check=({"m": 16, "k": 64}, {"m": 16, "k": 256}, {"m": 48, "k": 64}, {"m": 160, "k": 192}),
)


def _whole_pieces(size: Size) -> str | None:
    if size["m"] % ROWS or size["k"] % SLAB:
        return "m must be a multiple of 16 and k of 64, the pieces that metadata have"
    return None


def _launches(name: str, piece: int) -> Callable[[Size], tuple[Launch, ...]]:
    """Threads for all pieces; ``piece`` is the number of halves of a thread."""

    def launches(size: Size) -> tuple[Launch, ...]:
        blocks = ceil_div(size["m"] * size["k"], piece * THREADS)
        args = ("dense", "values", "metadata", np.int32(size["m"]), np.int32(size["k"]))
        return (Launch(f"prune_{name}", (blocks,), (THREADS,), args),)

    return launches


def _rung(name: str, idea: str, piece: int) -> Rung:
    alignment = {"dense": 16, "values": 16, "metadata": 16}
    return Rung(name, idea, _launches(name, piece), requires=_whole_pieces, alignment=alignment)


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        _rung("halves", "a thread prunes 16 neighbours of a row", PIECE),
        _rung("words", "a warp prunes 16 rows, and writes whole words of metadata", WARP_PIECE // 32),
    ),
)
