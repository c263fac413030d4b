"""The block that the tuned rungs take for a row: the tables of ``records/<gpu>/tuning/classifier.json``.

``SHAPES`` holds the tables; tests replace them, or ``SMS``, here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from climb.bench import records
from climb.bench.problem import Size
from climb.bench.records.kinds import TuningRecord

#: SMs of the GPU for which the launches are planned, an H200. Results do not depend on it.
SMS = 132
#: Blocks per SM below which a row is split over blocks.
BLOCKS_PER_SM = 4


@dataclass(frozen=True)
class Shape:
    """A block of ``threads`` threads that have ``unroll`` packs each in flight, for rows of at most ``packs`` packs;
    with ``packs`` None for all longer rows, which the block covers in several rounds."""

    packs: int | None
    threads: int
    unroll: int

    @property
    def covered(self) -> int:
        """Packs that the block covers at once."""
        return self.threads * self.unroll


def table_path(gpu: str = records.DEFAULT_GPU) -> Path:
    """The file of the tables.

    A GPU that nobody has searched on takes the blocks of the book's GPU, and ``climb record`` says so, or keeps those
    that it was measured with.
    """
    return records.shown_file("tuning/classifier.json", gpu)


def search_path(gpu: str = records.DEFAULT_GPU) -> Path:
    """The file with the trials of a search: on the book's GPU, if nobody has searched on this one."""
    return records.shown_file("search/classifier.json", gpu)


_TABLES = records.load(table_path(), TuningRecord).tables
#: The shapes of each table, short rows first: ``row_block`` serves all rungs with a block per row except no_bounds.
SHAPES: dict[str, tuple[Shape, ...]] = {
    name: tuple(Shape(*row) for row in table.rows) for name, table in _TABLES.items()
}


def width(size: Size) -> int:
    """Floats per load, a pack: 4 where every row starts at a multiple of 16 bytes."""
    return 4 if size["inputs"] % 4 == 0 else 1


def packs_of(size: Size) -> int:
    """Packs of a row."""
    return size["inputs"] // width(size)


def choose(table: str, packs: int) -> Shape:
    """The shape for rows of ``packs`` packs: the first of the table that is meant for them."""
    return next(shape for shape in SHAPES[table] if shape.packs is None or packs <= shape.packs)
