"""Sparse matrix times vector, y = A x, float32: A in compressed sparse rows, with zeros anywhere.

Zeros that are not stored are not multiplied: a NaN in x reaches only rows that have an element there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.libraries import cusparse
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div
from climb.bench.references import sum_of_magnitudes
from kernels.sparsity import csr

WORD = 4
THREADS, WARP = 256, 32
#: Shares of elements that are not zero, of the sweep.
SHARES = (0.5, 0.4, 0.3, 0.2, 0.05, 0.02, 0.01)
EDGE = 8192


def _size(share: float) -> Size:
    return {"m": EDGE, "k": EDGE, "nonzeros": round(share * EDGE * EDGE)}


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    matrix = csr.random(size["m"], size["k"], size["nonzeros"], rng)
    return {**matrix, "x": rng.standard_normal(size["k"], dtype=np.float32)}


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    return {"y": csr.times_vector(*(inputs[name] for name in ("offsets", "columns", "values", "x")))}


problem = Problem(
    name="csr_vector",
    title="Sparse matrix (CSR) times vector, float32",
    size_keys=("m", "k", "nonzeros"),
    parameters=("m",),
    arguments=(
        Argument("offsets", "int32", (lambda size: size["m"] + 1,)),
        Argument("columns", "int32", ("nonzeros",)),
        Argument("values", "float32", ("nonzeros",)),
        Argument("x", "float32", ("k",)),
        Argument("y", "float32", ("m",), role="output"),
    ),
    make_inputs=_inputs,
    reference=_reference,
    reference_magnitude=sum_of_magnitudes(_reference),
    # A sum of as many terms as a row has elements rounds as often, by at most 2^-24 of a partial sum.
    tolerance=lambda size: 4 * 2.0**-24 * max(1.0, (size["nonzeros"] / size["m"]) ** 0.5),
    flops=lambda size: 2 * size["nonzeros"],
    bytes=lambda size: WORD * (2 * size["nonzeros"] + 2 * size["m"] + 1 + size["k"]),
    headline=(_size(0.1),),
    sweep=tuple(map(_size, SHARES)),
    check=(
        {"m": 1, "k": 1, "nonzeros": 1},
        {"m": 5, "k": 7, "nonzeros": 3},
        {"m": 40, "k": 33, "nonzeros": 700},
        {"m": 300, "k": 50, "nonzeros": 1501},
        {"m": 9, "k": 700, "nonzeros": 2803},
    ),
)


def lanes_for(size: Size) -> int:
    """Lanes for a row: as many as it has quads on average, from 4 to 32."""
    lanes = 4
    while lanes < WARP and lanes * 4 < size["nonzeros"] / size["m"]:
        lanes *= 2
    return lanes


def _launches(kernel: Callable[[Size], str], lanes: Callable[[Size], int]) -> Callable[[Size], tuple[Launch, ...]]:
    """Groups of lanes for all rows."""

    def launches(size: Size) -> tuple[Launch, ...]:
        grid = (ceil_div(size["m"] * lanes(size), THREADS),)
        args = ("offsets", "columns", "values", "x", "y", np.int32(size["m"]))
        return (Launch(kernel(size), grid, (THREADS,), args),)

    return launches


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung("row_thread", "a thread per row", _launches(lambda _: "csr_row_thread", lambda _: 1)),
        Rung("row_warp", "a warp per row", _launches(lambda _: "csr_row_warp", lambda _: WARP)),
        Rung(
            "vectorised",
            "16 bytes per load",
            _launches(lambda _: "csr_vectorised", lambda _: WARP),
            alignment={"columns": 16, "values": 16},
        ),
        Rung(
            "groups",
            "as many lanes as a row has quads",
            _launches(lambda size: f"csr_groups<{lanes_for(size)}>", lanes_for),
            alignment={"columns": 16, "values": 16},
        ),
    ),
    peers=cusparse.vector_peers(),
    regimes=("cold",),
)
