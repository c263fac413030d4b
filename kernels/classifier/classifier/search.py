"""The search for the block of a row: ``climb search classifier`` on a GPU tries all candidates, keeps the fastest.

A row length stands for all rows from the next shorter one on; the longest stands for all longer rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from climb.bench.problem import Launch, Size
from kernels.classifier.classifier import ladder
from kernels.classifier.classifier.launches import no_bounds_launch, row_block_launch
from kernels.classifier.classifier.problem import CLASS1, CLASS2, WARP
from kernels.classifier.classifier.tuning import SHAPES, Shape, packs_of
from kernels.common import search
from kernels.common.search import Candidate, Trial, fastest_together

COLUMNS = ("threads", "unroll")
#: The rungs with which a table is searched.
RUNGS = {"row_block": ("row_block", "launch_bounds"), "no_bounds": ("no_bounds",)}
#: What each entry of the tables is searched with: rows of as many packs as it is for, the last for all longer rows.
ENTRIES: tuple[tuple[Size, ...], ...] = (
    *(({**CLASS1, "inputs": 4 * packs},) for packs in (64, 128, 256, 512)),
    (CLASS2, {**CLASS1, "inputs": CLASS2["inputs"]}),
    (CLASS1, {**CLASS1, "inputs": 1 << 20, "outputs": 64}),
)
THREADS, UNROLL, MOST_THREADS = (64, 128, 192, 256, 320, 384, 448, 512, 1024), tuple(range(1, 9)), 512


def shapes(table: str, packs: int) -> Iterator[Shape]:
    """The candidates of a table for rows of ``packs`` packs: every thread has at least one pack."""
    for threads, unroll in itertools.product(THREADS, UNROLL):
        warps = threads // WARP
        halves = warps & (warps - 1) == 0 or table != "no_bounds"
        if threads <= MOST_THREADS and threads * unroll <= packs and halves:
            yield Shape(packs, threads, unroll)


def candidates() -> list[Candidate]:
    """The candidates of both tables at all row lengths."""

    def made(rung: str, size: Size, shape: Shape) -> Launch:
        return (
            no_bounds_launch(size, shape)
            if rung == "no_bounds"
            else row_block_launch(f"classifier_{rung}", size, shape)
        )

    return [
        Candidate(rung, size, (shape.threads, shape.unroll), made(rung, size, shape))
        for sizes in ENTRIES
        for size in sizes
        for table in SHAPES
        for rung in RUNGS[table]
        for shape in shapes(table, packs_of(sizes[0]))
    ]


def tables(trials: Sequence[Trial]) -> dict[str, dict[str, Any]]:
    """Each table: for each row length the shape that is fastest over the rungs and sizes it is searched with, or the
    one of today's table if it is nearly as fast."""
    made: dict[str, dict[str, Any]] = {}
    for table, today in SHAPES.items():
        held = {shape.packs: (shape.threads, shape.unroll) for shape in today}
        packs = [None if sizes is ENTRIES[-1] else packs_of(sizes[0]) for sizes in ENTRIES]
        rows = [
            [of, *fastest_together(trials, RUNGS[table], sizes, held.get(of))]
            for of, sizes in zip(packs, ENTRIES, strict=True)
        ]
        made[table] = {"columns": ["packs", *COLUMNS], "rows": rows}
    return made


def compile_all() -> None:
    """Compile every candidate into CuPy's cache."""
    search.compile_all(ladder.name, candidates())


def record_search(folder: Path | None = None) -> Path:
    """Search, and write trials and tables below ``folder`` (``records/<gpu>`` by default); the path of the trials."""
    return search.run(ladder, candidates(), COLUMNS, tables, folder)
