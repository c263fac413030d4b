"""Matrix product C = A B of halves with sums in float32, where A is 2:4 sparse and stored as values and metadata.

Products with what is not stored are not made: an infinity or NaN in B reaches only rows of A that store an element for
its row of B.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.libraries import cusparselt
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, Tensor, ceil_div
from climb.bench.references import sum_of_magnitudes
from kernels.sparsity import compression

HALF, FLOAT = 2, 4
ROWS, SLAB = compression.ROWS, compression.SLAB
#: SMs of the H200: the last rung has at most one block on each.
SMS = 132
MAX_EXTENT = (1 << 31) - 257
MAX_GRID_Y = 65535


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    dense = rng.standard_normal((size["m"], size["k"]), dtype=np.float32).astype(np.float16)
    values, metadata = compression.compress(dense)
    B = rng.standard_normal((size["k"], size["n"]), dtype=np.float32).astype(np.float16)
    return {"values": values, "metadata": metadata, "B": B}


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    metadata = inputs["metadata"]
    A = compression.expand(inputs["values"], metadata)
    stored = compression.expand(np.ones_like(inputs["values"]), metadata) != 0
    return {"C": compression.product(A, stored, inputs["B"])}


def bytes_of(size: Size) -> int:
    """Values, metadata and B read once, C written once."""
    m, n, k = (size[key] for key in ("m", "n", "k"))
    return m * k // 2 * HALF + m * k // 8 + k * n * HALF + m * n * FLOAT


problem = Problem(
    name="sparse_gemm",
    precision="fp16",
    title="2:4 sparse matrix product, float16 with sums in float32",
    size_keys=("m", "n", "k"),
    arguments=(
        Argument("values", "float16", ("m", lambda size: size["k"] // 2)),
        Argument("metadata", "uint32", (lambda size: size["k"] // SLAB, lambda size: size["m"] // ROWS, lambda _: 32)),
        Argument("B", "float16", ("k", "n")),
        Argument("C", "float32", ("m", "n"), role="output"),
    ),
    make_inputs=_inputs,
    reference=_reference,
    reference_magnitude=sum_of_magnitudes(_reference),
    # Products of halves are exact in float32. An instruction adds 16 of them to a sum and truncates, by less than 2^-23
    # of it; truncation has one direction, so errors add up in proportion to the number of instructions.
    tolerance=lambda size: 2.0**-23 * (4 + size["k"] / 32),
    flops=lambda size: size["m"] * size["n"] * size["k"],
    operations=lambda size: {"tensor": {"f16": size["m"] * size["n"] * size["k"]}},
    bytes=bytes_of,
    headline=({"m": 4096, "n": 4096, "k": 4096},),
    sweep=(
        # At 8192 power caps the clocks so far that the harness discards every sample of the fastest.
        *({"m": edge, "n": edge, "k": edge} for edge in (1024, 2048)),
        {"m": 11008, "n": 32, "k": 4096},
    ),
    check=(
        {"m": 16, "n": 8, "k": 64},
        {"m": 48, "n": 40, "k": 128},
        {"m": 16, "n": 8, "k": 448},
        {"m": 272, "n": 8, "k": 64},
        {"m": 16, "n": 264, "k": 128},
        {"m": 144, "n": 72, "k": 128},
    ),
)


def whole_pieces(size: Size) -> str | None:
    """Return why the format or the kernels refuse a size, or None."""
    if size["m"] % ROWS or size["n"] % 8 or size["k"] % SLAB:
        return "m must be a multiple of 16, n of 8 and k of 64, the pieces that metadata and copies have"
    if max(size["m"], size["n"], size["k"]) > MAX_EXTENT or size["m"] > 64 * MAX_GRID_Y:
        return f"n and k may be at most {MAX_EXTENT}, m {64 * MAX_GRID_Y}"
    return None


def _extents(size: Size) -> tuple[np.int32, ...]:
    return tuple(np.int32(size[key]) for key in ("m", "n", "k"))


def _blocks(name: str, rows: int, cols: int, shared: int = 0) -> Callable[[Size], tuple[Launch, ...]]:
    """Blocks of 128 threads for tiles of ``rows`` x ``cols``."""

    def launches(size: Size) -> tuple[Launch, ...]:
        grid = (ceil_div(size["n"], cols), ceil_div(size["m"], rows))
        return (Launch(f"sparse_{name}", grid, (128,), ("values", "metadata", "B", "C", *_extents(size)), shared),)

    return launches


#: A stage of the rungs with wgmma: values, B and metadata of 128 x 256 sums and 64 of k.
STAGE = 128 * 32 * HALF + 64 * 256 * HALF + 128 * 64 // 8


def _warpgroups(name: str, stages: int, cluster: int = 1, resident: bool = False) -> Callable[[Size], tuple]:
    """Tiles of 128 x 256 by blocks of 384 threads; ``cluster`` blocks share tiles of B."""

    def launches(size: Size) -> tuple[Launch, ...]:
        m, n, k = (size[key] for key in ("m", "n", "k"))
        blocks = cluster * ceil_div(m, cluster * 128) * ceil_div(n, 256)
        grid = min(blocks, SMS) if resident else blocks
        values = Tensor("values", (m, k // 2), (128, 32), "float16", swizzle=64)
        B = Tensor("B", (k, n), (64, 64), "float16", swizzle=128)
        args = (values, "metadata", B, "C", *_extents(size))
        return (Launch(f"sparse_{name}", (grid,), (384,), args, stages * STAGE),)

    return launches


def _rung(name: str, idea: str, launches: Callable[[Size], tuple[Launch, ...]], hopper: bool) -> Rung:
    return Rung(
        name,
        idea,
        launches,
        requires=whole_pieces,
        alignment={"values": 16, "metadata": 16, "B": 16, "C": 16},
        capability="9.0" if hopper else "8.0",
        arch="sm_90a" if hopper else "",
        swept=name != "fragments",
    )


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        _rung("fragments", "mma.sp on fragments from global memory", _blocks("fragments", 64, 64), False),
        _rung("pipelined", "a ring of asynchronous copies, ldmatrix", _blocks("pipelined", 128, 128, 4 * 25600), False),
        _rung("wgmma", "the copy engine, and sparse products of warpgroups", _warpgroups("wgmma", 5), True),
        _rung("persistent", "clusters share B, blocks stay", _warpgroups("persistent", 5, 2, resident=True), True),
        _rung("thin", "64 x 32 sums a block, seven slabs ahead", _blocks("thin", 64, 32, 8 * 8704), False),
    ),
    peers=cusparselt.peers(compression.expand),
)
