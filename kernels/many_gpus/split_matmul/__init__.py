"""Matrix product in float32 whose factors are cut over several GPUs: by columns of B, or along k."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from climb.bench.problem import Launch, Size
from climb.distributed.ladder import SharedLadder, SharedProblem, SharedRung
from climb.distributed.plan import (
    COMPUTE,
    MESSAGES,
    After,
    Arrays,
    Collective,
    Compute,
    Part,
    Place,
    Plan,
    Step,
)
from kernels.sgemm.sgemm.product import Product
from kernels.sgemm.sgemm.rungs import PLANS

FLOAT = 4
#: Chunks of rows of the rung that sends one while it computes the next.
CHUNKS = 4
SOURCE = "../../sgemm/sgemm/10_tuned.cu"


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "A": rng.standard_normal((size["m"], size["k"]), dtype=np.float32),
        "B": rng.standard_normal((size["k"], size["n"]), dtype=np.float32),
    }


def _product(a: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    return {"C": a.astype(np.float64) @ b.astype(np.float64)}


def _launches(m: int, n: int, k: int, a: Part, c: Part) -> list[Step]:
    """The kernel of sgemm's rung ``tuned`` on contiguous matrices."""
    if not m or not n:
        return []
    width = 4 if n % 4 == 0 and k % 4 == 0 else 1
    product = Product(m, n, k, lda=k, ldb=n, ldc=n, width=width)
    found: list[Step] = []
    for launch in PLANS["tuned"](product):
        args = tuple({"A": a, "C": c}.get(arg, arg) if isinstance(arg, str) else arg for arg in launch.args)
        found.append(Compute(Launch(launch.kernel, launch.grid, launch.block, args, launch.shared_mem), COMPUTE))
    return found


# By columns: a rank has all of A, some columns of B, and computes those columns of C.


def _columns_arrays(place: Place, size: Size) -> Arrays:
    m, n, k = size["m"], len(place.share(size["n"])), size["k"]
    return {"A": ((m, k), "float32"), "B": ((k, n), "float32"), "C": ((m, n), "float32")}


def _columns_share(inputs: Mapping[str, np.ndarray], place: Place, size: Size) -> dict[str, np.ndarray]:
    own = place.share(size["n"])
    return {"A": inputs["A"], "B": np.ascontiguousarray(inputs["B"][:, own.start : own.stop])}


def _columns_reference(inputs: Mapping[str, np.ndarray], place: Place, size: Size) -> dict[str, np.ndarray]:
    own = place.share(size["n"])
    return _product(inputs["A"], inputs["B"][:, own.start : own.stop])


def _columns(place: Place, size: Size) -> Plan:
    """No message at all: the price is that every rank keeps all of A."""
    m, n, k = size["m"], len(place.share(size["n"])), size["k"]
    return tuple(_launches(m, n, k, Part("A", 0, m * k), Part("C", 0, m * n)))


# By rows: a rank has some rows of A, and the others' rows come to it.


def _gather_arrays(place: Place, size: Size) -> Arrays:
    rows = size["m"] // place.ranks
    return {**_columns_arrays(place, size), "rows": ((rows, size["k"]), "float32")}


def _gather_share(inputs: Mapping[str, np.ndarray], place: Place, size: Size) -> dict[str, np.ndarray]:
    own = place.share(size["m"])
    return {"rows": inputs["A"][own.start : own.stop], "B": _columns_share(inputs, place, size)["B"]}


def _gather(place: Place, size: Size) -> Plan:
    """A is spread over the ranks by rows: it is gathered first, then as columns."""
    count = size["m"] // place.ranks * size["k"]
    gather = Collective("allGather", Part("rows", 0, count), Part("A", 0, count * place.ranks))
    return (gather, After(COMPUTE, MESSAGES), *_columns(place, size))


# Along k: a rank has some columns of A and the same rows of B, and a part of every sum of C.


def _split_k_arrays(place: Place, size: Size) -> Arrays:
    m, n, k = size["m"], size["n"], len(place.share(size["k"]))
    return {
        "A": ((m, k), "float32"),
        "B": ((k, n), "float32"),
        "partial": ((m, n), "float32"),
        "C": ((m // place.ranks, n), "float32"),
    }


def _split_k_share(inputs: Mapping[str, np.ndarray], place: Place, size: Size) -> dict[str, np.ndarray]:
    own = place.share(size["k"])
    return {"A": np.ascontiguousarray(inputs["A"][:, own.start : own.stop]), "B": inputs["B"][own.start : own.stop]}


def _split_k(chunks: int) -> Callable[[Place, Size], Plan]:
    """The plan with partial sums of ``chunks`` chunks of rows; each is reduced and scattered while the next runs."""

    def plan(place: Place, size: Size) -> Plan:
        m, n, k = size["m"], size["n"], len(place.share(size["k"]))
        rows = m // chunks
        steps: list[Step] = []
        for chunk in range(chunks):
            partial = Part("partial", chunk * rows * n, rows * n)
            steps += _launches(rows, n, k, Part("A", chunk * rows * k, rows * k), partial)
            own = rows * n // place.ranks
            steps += [
                After(MESSAGES, COMPUTE),
                Collective("reduceScatter", partial, Part("C", chunk * own, own)),
            ]
        return tuple(steps)

    return plan


def _split_k_reference(chunks: int) -> Callable[[Mapping[str, np.ndarray], Place, Size], dict[str, np.ndarray]]:
    """A rank's rows of each chunk."""

    def reference(inputs: Mapping[str, np.ndarray], place: Place, size: Size) -> dict[str, np.ndarray]:
        each = size["m"] // chunks
        own = each // place.ranks
        starts = [chunk * each + place.rank * own for chunk in range(chunks)]
        rows = np.concatenate([inputs["A"][start : start + own] for start in starts])
        return _product(rows, inputs["B"])

    return reference


def _rows_divide(chunks: int) -> Callable[[Size, int], str | None]:
    def requires(size: Size, ranks: int) -> str | None:
        if size["m"] % (ranks * chunks):
            return f"m must be a multiple of {ranks * chunks}: every rank gets as many rows of each chunk"
        if size["k"] < ranks:
            return f"k must be at least {ranks}, so that every rank has a part of each sum"
        return None

    return requires


problem = SharedProblem(
    name="split_matmul",
    title="Matrix product over several GPUs, float32",
    size_keys=("m", "n", "k"),
    make_inputs=_inputs,
    arrays=_columns_arrays,
    share=_columns_share,
    reference=_columns_reference,
    # As sgemm: a dot product of k terms rounds k times, and the errors average out.
    tolerance=lambda size: 4 * 2.0**-24 * max(1.0, size["k"] ** 0.5),
    flops=lambda size: 2 * size["m"] * size["n"] * size["k"],
    bytes=lambda size: FLOAT * (size["m"] * size["k"] + size["k"] * size["n"] + size["m"] * size["n"]),
    headline=tuple({"m": edge, "n": edge, "k": edge} for edge in (8192, 4096, 1024)),
    check=({"m": 8, "n": 12, "k": 20}, {"m": 24, "n": 7, "k": 5}),
)


def _cut_along_k(name: str, idea: str, chunks: int, graph: bool = False) -> SharedRung:
    return SharedRung(
        name,
        idea,
        _split_k(chunks),
        SOURCE,
        requires=_rows_divide(chunks),
        graph=graph,
        arrays=_split_k_arrays,
        share=_split_k_share,
        reference=_REFERENCES[chunks],
    )


#: One function for each number of chunks, so that rungs with the same outputs share a reference.
_REFERENCES = {chunks: _split_k_reference(chunks) for chunks in (1, CHUNKS)}

shared_ladder = SharedLadder(
    problem,
    Path(__file__).parent,
    rungs=(
        SharedRung("one_gpu", "the whole product on one GPU", _columns, SOURCE, alone=True),
        SharedRung("columns", "columns of B, no message", _columns, SOURCE),
        SharedRung(
            "gather_rows",
            "gather the rows of A first",
            _gather,
            SOURCE,
            requires=_rows_divide(1),
            arrays=_gather_arrays,
            share=_gather_share,
        ),
        _cut_along_k("split_k", "cut along k, then reduce and scatter", 1),
        _cut_along_k("chunks", "reduce a chunk while the next is computed", CHUNKS),
        _cut_along_k("graph", "all of it as one CUDA graph", CHUNKS, graph=True),
    ),
)
