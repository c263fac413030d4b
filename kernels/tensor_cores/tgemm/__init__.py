"""Matrix product C = A B, float32 in and out and as exact as float32, on tensor cores: split factors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.libraries import cublas
from climb.bench.problem import Argument, Peer, Problem, Rung, Size
from climb.bench.references import sum_of_magnitudes
from climb.bench.work import Work
from kernels.sgemm.sgemm import ladder as sgemm
from kernels.sgemm.sgemm.product import MAX_EXTENT, MAX_GRID_Y, Product
from kernels.tensor_cores.tgemm.data import KINDS, LEFT, factors
from kernels.tensor_cores.tgemm.launches import TILE
from kernels.tensor_cores.tgemm.plans import PLANS

FLOAT = 4
ULP = 2.0**-24


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    return {"C": inputs["A"].astype(np.float64) @ inputs["B"].astype(np.float64)}


def _square(edge: int, data: str = "normal") -> Size:
    return {"m": edge, "n": edge, "k": edge, "data": data}


def _flops(size: Size) -> int:
    """Additions and multiplications of one product."""
    return 2 * size["m"] * size["n"] * size["k"]


def _products(terms: int, kind: str) -> Callable[[Size], Work]:
    """The least work of a rung that adds ``terms`` products of parts of a type."""
    return lambda size: replace(problem.work(size), tensor={kind: terms * _flops(size)})


def _of_terms(size: Size) -> float:
    """The size of the terms that make a result, beside the result."""
    return 1 / LEFT if size["data"] == "cancelling" else 1.0


def _float32_grade(size: Size) -> float:
    """The bound of sgemm, whose sums round k times, by at most 2^-24, in either direction."""
    return 4 * ULP * max(1.0, size["k"] ** 0.5) * _of_terms(size)


def _truncated(terms: int, depth: int) -> Callable[[Size], float]:
    """The bound of a rung that adds ``terms`` products of parts for each ``depth`` of k in one sum: each instruction
    truncates it, by less than 2^-23, always towards zero."""
    return lambda size: _float32_grade(size) + 2 * ULP * terms * size["k"] / depth * _of_terms(size)


def _of_16_bits(size: Size) -> float:
    """The bound of two bfloat16 parts: each factor keeps 16 bits and rounds by 2^-17, and their product is left out."""
    return _truncated(3, 16)(size) + 2.0**-15 * _of_terms(size)


problem = Problem(
    name="tgemm",
    title="General matrix product, float32 by tensor cores",
    size_keys=("m", "n", "k", "data"),
    arguments=(
        Argument("A", "float32", ("m", "k")),
        Argument("B", "float32", ("k", "n")),
        Argument("C", "float32", ("m", "n"), role="output"),
    ),
    kinds={"data": KINDS},
    make_inputs=factors,
    reference=_reference,
    reference_magnitude=sum_of_magnitudes(_reference),
    tolerance=_float32_grade,
    # Two halves are the fewest parts with the bits of a float, and three products of them the fewest that keep those.
    operations=lambda size: {"tensor": {"f16": 3 * _flops(size)}},
    flops=_flops,
    bytes=lambda size: FLOAT * (size["m"] * size["k"] + size["k"] * size["n"] + size["m"] * size["n"]),
    headline=(_square(4096),),
    sweep=(
        *(_square(4096, data) for data in KINDS[1:]),
        *(_square(edge) for edge in (1024, 2048, 8192)),
        {"m": 32, "n": 4096, "k": 4096, "data": "normal"},
        {"m": 512, "n": 11008, "k": 4096, "data": "normal"},
        {"m": 16384, "n": 768, "k": 768, "data": "normal"},
    ),
    check=(
        {"m": 0, "n": 3, "k": 4, "data": "normal"},
        {"m": 5, "n": 3, "k": 0, "data": "normal"},
        {"m": 1, "n": 1, "k": 1, "data": "normal"},
        {"m": 130, "n": 37, "k": 65, "data": "subnormal"},
        {"m": 33, "n": 1, "k": 7, "data": "cancelling"},
        {"m": 9, "n": 130, "k": 70, "data": "uniform"},
        {"m": 20, "n": 40, "k": 36, "data": "scaled"},
    ),
    accepts_empty=True,
)


def _requires(size: Size) -> str | None:
    if size["m"] > MAX_GRID_Y * TILE:
        return f"m may be at most {MAX_GRID_Y * TILE}, because a grid has at most {MAX_GRID_Y} blocks in y"
    if max(size["m"], size["n"], size["k"]) > MAX_EXTENT:
        return f"m, n and k may be at most {MAX_EXTENT}, because positions in a row are 32-bit"
    return None


def _rung(
    name: str,
    idea: str,
    tolerance: Callable[[Size], float] | None = None,
    work: Callable[[Size], Work] | None = None,
) -> Rung:
    plan, scratch = PLANS[name]
    return Rung(
        name,
        idea,
        lambda size: plan(Product.of(size)),
        alignment={"A": 16, "B": 16, "C": 16},
        requires=_requires,
        workspace=lambda size: scratch(Product.of(size)),
        capability="9.0",
        arch="sm_90a",
        tolerance=tolerance,
        work=work,
    )


def _peer(peer: Peer) -> Peer:
    """A peer of sgemm with its bound for this ladder's kinds of data.

    Without TF32 it is float32's. A library may take subnormal numbers for zeros, which is an error of 1; the record
    shows what it does.
    """
    if peer.name.endswith("fp32"):
        return peer
    own = peer.tolerance or _truncated(3, 8)
    return replace(peer, tolerance=lambda size: 1.0 if size["data"] == "subnormal" else own(size) * _of_terms(size))


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        _rung("tf32x3", "two TF32 parts, three products", _truncated(3, 8), _products(3, "tf32")),
        _rung("bf16x3", "two bfloat16 parts, three products, 16 bits", _of_16_bits, _products(3, "bf16")),
        _rung("bf16x6", "three bfloat16 parts, six products", _truncated(6, 16), _products(6, "bf16")),
        _rung("bf16x9", "three bfloat16 parts, all nine products", _truncated(9, 16), _products(9, "bf16")),
        _rung("f16x3", "two halves and scales, three products", _truncated(3, 16)),
        _rung("promoted", "sums go to float32 totals every 64 of k"),
        _rung("fused", "A is split in registers; a producer, two consumers, clusters"),
        _rung("one_pass", "B is read once, launches overlap"),
        _rung("tuned", "A split beforehand, consumers take turns, C by the copy engine"),
        _rung("held", "A split in registers while the other warpgroup multiplies"),
        _rung("one_launch", "one launch prepares both factors"),
        _rung("small_tiles", "smaller tiles, no block waits for another"),
        _rung("few_rows", "nothing prepared; each warp splits what it multiplies"),
        _rung("wide_tiles", "few rows are split once for 320 columns", work=_products(3, "tf32")),
        _rung("shares", "all blocks of a tile add up a share, without clusters", work=_products(3, "tf32")),
    ),
    peers=(
        *(_peer(peer) for peer in sgemm.peers),
        Peer(
            "cuBLAS fp64",
            cublas.product_in_doubles,
            cublas.cublas("torch.mm of float64 copies, which each call makes", "fp64"),
        ),
    ),
)
