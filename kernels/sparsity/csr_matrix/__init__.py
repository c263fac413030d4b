"""Sparse matrix times dense matrix, C = A B, float32: A in compressed sparse rows, with zeros anywhere.

Zeros that are not stored are not multiplied: a NaN in B reaches only rows that have an element for its row.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.libraries import cusparse
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div
from climb.bench.references import sum_of_magnitudes
from kernels.sparsity import csr
from kernels.sparsity.compression import product

WORD = 4
#: Threads of a block, which has a warp for each of its rows.
THREADS, ROWS = 256, 8
#: Shares of elements that are not zero, of the sweep.
SHARES = (0.5, 0.3, 0.2, 0.05, 0.02, 0.01)
EDGE, COLUMNS = 4096, 512
MAX_GRID_Y = 65535


def _size(share: float) -> Size:
    return {"m": EDGE, "n": COLUMNS, "k": EDGE, "nonzeros": round(share * EDGE * EDGE)}


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    matrix = csr.random(size["m"], size["k"], size["nonzeros"], rng)
    return {**matrix, "B": rng.standard_normal((size["k"], size["n"]), dtype=np.float32)}


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    offsets, columns, values = (inputs[name] for name in ("offsets", "columns", "values"))
    A = csr.dense(offsets, columns, values, size["k"])
    stored = csr.dense(offsets, columns, np.ones_like(values), size["k"]) != 0
    return {"C": product(A, stored, inputs["B"])}


def _whole_quads(size: Size) -> str | None:
    return None if size["n"] % 4 == 0 else "n must be a multiple of 4, because a lane has four columns"


problem = Problem(
    name="csr_matrix",
    title="Sparse matrix (CSR) times dense matrix, float32",
    size_keys=("m", "n", "k", "nonzeros"),
    parameters=("m",),
    arguments=(
        Argument("offsets", "int32", (lambda size: size["m"] + 1,)),
        Argument("columns", "int32", ("nonzeros",)),
        Argument("values", "float32", ("nonzeros",)),
        Argument("B", "float32", ("k", "n")),
        Argument("C", "float32", ("m", "n"), role="output"),
    ),
    make_inputs=_inputs,
    reference=_reference,
    reference_magnitude=sum_of_magnitudes(_reference),
    # A sum of as many terms as a row has elements rounds as often, by at most 2^-24 of a partial sum.
    tolerance=lambda size: 4 * 2.0**-24 * max(1.0, (size["nonzeros"] / size["m"]) ** 0.5),
    flops=lambda size: 2 * size["nonzeros"] * size["n"],
    bytes=lambda size: WORD * (2 * size["nonzeros"] + size["m"] + 1 + size["k"] * size["n"] + size["m"] * size["n"]),
    headline=(_size(0.1),),
    sweep=tuple(map(_size, SHARES)),
    check=(
        {"m": 1, "n": 1, "k": 1, "nonzeros": 1},
        {"m": 5, "n": 4, "k": 7, "nonzeros": 3},
        {"m": 9, "n": 132, "k": 33, "nonzeros": 200},
        {"m": 20, "n": 33, "k": 9, "nonzeros": 170},
        {"m": 3, "n": 40, "k": 150, "nonzeros": 303},
    ),
)


def _launch(name: str, size: Size, columns: int) -> tuple[Launch, ...]:
    """A warp for each row and each ``columns`` columns."""
    grid = (ceil_div(size["n"], columns), ceil_div(size["m"], ROWS))
    args = ("offsets", "columns", "values", "B", "C", np.int32(size["m"]), np.int32(size["n"]))
    return (Launch(f"csr_mm_{name}", grid, (THREADS,), args),)


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung("row_warp", "a warp for 32 columns of a row", lambda size: _launch("row_warp", size, 32)),
        Rung(
            "vectorised",
            "four columns a lane, 32 elements per load",
            lambda size: _launch("vectorised", size, 128),
            requires=_whole_quads,
            alignment={"B": 16, "C": 16},
        ),
    ),
    peers=cusparse.matrix_peers(),
    regimes=("cold",),
)
