"""Which block for a row: ``climb search classifier`` on a GPU tries all candidates and keeps the fastest.

A row length stands for all rows from the next shorter one on; the longest stands for all longer rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from climb.bench.problem import Size
from kernels.classifier.classifier import ladder
from kernels.classifier.classifier.launches import no_bounds_launch, row_block_launch
from kernels.classifier.classifier.problem import CLASS1, WARP
from kernels.classifier.classifier.tuning import SHAPES, Shape, packs_of
from kernels.common import search
from kernels.common.search import Candidate, Trial, fastest

COLUMNS = ("threads", "unroll")
#: The rung with which a table is searched.
RUNGS = {"row_block": "launch_bounds", "no_bounds": "no_bounds"}
#: Rows of as many packs as each entry of the tables is for, with as many outputs as class1.
SIZES: tuple[Size, ...] = (*({**CLASS1, "inputs": 4 * packs} for packs in (64, 128, 256, 512, 1024)), CLASS1)
THREADS, UNROLL, MOST_THREADS = (64, 128, 192, 256, 320, 384, 448, 512, 1024), tuple(range(1, 9)), 512


def shapes(table: str, packs: int) -> Iterator[Shape]:
    """The candidates of a table for rows of so many packs: no thread is without a pack."""
    for threads, unroll in itertools.product(THREADS, UNROLL):
        warps = threads // WARP
        halves = warps & (warps - 1) == 0 or table != "no_bounds"
        if threads <= MOST_THREADS and threads * unroll <= packs and halves:
            yield Shape(packs, threads, unroll)


def candidates() -> list[Candidate]:
    """The candidates of both tables at all row lengths."""
    make = {"row_block": lambda size, shape: row_block_launch("classifier_launch_bounds", size, shape),
            "no_bounds": no_bounds_launch}  # fmt: skip
    return [
        Candidate(RUNGS[table], size, (shape.threads, shape.unroll), make[table](size, shape))
        for size in SIZES
        for table in SHAPES
        for shape in shapes(table, packs_of(size))
    ]


def tables(trials: Sequence[Trial]) -> dict[str, dict[str, Any]]:
    """Each table: the fastest shape for each row length, the last of them for all longer rows."""
    made: dict[str, dict[str, Any]] = {}
    for table in SHAPES:
        best = [(packs_of(size), fastest(trials, RUNGS[table], size).candidate.values) for size in SIZES]
        rows = [[packs if packs_of(SIZES[-1]) != packs else None, *values] for packs, values in best]
        made[table] = {"columns": ["packs", *COLUMNS], "rows": rows}
    return made


def compile_all() -> None:
    """Compile every candidate into CuPy's cache."""
    search.compile_all(ladder.name, candidates())


def record_search(folder: Path | None = None) -> Path:
    """Search, and write trials and tables below ``folder`` (``records/<gpu>`` by default); the path of the trials."""
    return search.run(ladder, candidates(), COLUMNS, tables, folder)
