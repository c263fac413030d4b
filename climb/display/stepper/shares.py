"""The shares of a matrix product under stream-K, read from the launches of its rung."""

from __future__ import annotations

import re
from dataclasses import dataclass

from climb.bench.ladder import BoundRung
from climb.bench.problem import Size, ceil_div


@dataclass(frozen=True)
class Piece:
    """The work of a portion on one tile: the slices ``first`` to ``last``, the end not included, of tile ``tile``."""

    tile: int
    first: int
    last: int


@dataclass(frozen=True)
class Shares:
    """``whole`` tiles for a block each, then ``rest`` tiles of ``slices`` slices each, cut into portions.

    A portion has ``portion`` slices, the last one fewer; ``rows``, ``cols`` and ``depth`` are the sizes of a tile and a
    slice. ``threads`` and ``shared`` are a block's; ``kernel`` is the one that computes portions, or whole tiles.
    """

    rows: int
    cols: int
    depth: int
    whole: int
    rest: int
    slices: int
    portion: int
    workers: int
    kernel: str
    threads: int
    shared: int

    @property
    def tiles(self) -> int:
        """Tiles of the whole product."""
        return self.whole + self.rest

    def pieces(self, worker: int) -> tuple[Piece, ...]:
        """List the pieces of one portion: the arithmetic of ``sgemm_portion``."""
        at = worker * self.portion
        end = min(at + self.portion, self.rest * self.slices)
        found = []
        while at < end:
            tile, first = divmod(at, self.slices)
            last = min(self.slices, first + end - at)
            found.append(Piece(self.whole + tile, first, last))
            at += last - first
        return tuple(found)


def shares(rung: BoundRung, size: Size) -> Shares:
    """Return the shares of a rung's launches. Raises ValueError if it cuts no tile at this size."""
    launches = {launch.kernel.split("<")[0].rsplit("_", 1)[-1]: launch for launch in rung.launches(size)}
    if "portion" not in launches:
        raise ValueError(f"{rung.rung.name} cuts no tile at {dict(size)}; its launches are {', '.join(launches)}")
    cut, gathers = launches["portion"], launches["gather"]
    numbers = re.search(r"Tile<(\d+), (\d+), (\d+)", cut.kernel)
    if numbers is None:
        raise ValueError(f"the kernel {cut.kernel} does not say the sizes of its tile")
    rows, cols, depth = (int(n) for n in numbers.groups())
    _, _, k, whole, portion = (int(n) for n in cut.args[:5])
    slices = max(1, ceil_div(k, depth))
    grid = (*gathers.grid, 1)
    return Shares(
        rows, cols, depth, whole, int(grid[1]), slices, portion, int(cut.grid[0]), cut.kernel,
        int(cut.block[0]), int(cut.shared_mem),
    )  # fmt: skip
