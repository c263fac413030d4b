"""The search for blocks: ``climb search conv1d`` on a GPU finds the fastest block of each tuned rung for every layer.

Compiling all candidates would take half an hour on sixteen cores, so a coordinate descent chooses which are tried.
The tables of the rungs from ``tuned`` on are made here; that of ``channels`` is kept, because the ladder
``conv1d_channels`` records it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from climb.bench.problem import Size
from kernels.common import search
from kernels.common.search import Candidate, Trial, fastest
from kernels.conv1d.conv1d import ladder
from kernels.conv1d.conv1d.problem import MAX_TILE, WARP
from kernels.conv1d.conv1d.tuned import launch
from kernels.conv1d.conv1d.tuning import BLOCKS, CHANNELS, MAX_SHARED, MAX_STATIC, Block, Shape, shape_of

COLUMNS = ("teams", "warps", "outputs", "groups", "channels", "strided")
TEAMS, WARPS, OUTPUTS, GROUPS, CHANNELS_OF_LANE = (1, 2, 4), (1, 2, 4, 8, 16), (1, 2, 4), (1, 2, 4), (1, 2, 4)
MAX_WARPS = 32
#: Where a search begins, as far as the layer allows: one team of eight warps, an output at a time, two groups.
MIDDLE = (1, 8, 1, 2, 1, 0)


def fits(rung: str, size: Size, block: Block) -> bool:
    """Return whether a rung can run with this block, and no thread or round of loads would be idle."""
    divides = size["o"] % (block.teams * block.outputs) == 0
    covers = block.covered < 2 * max(size["i"], WARP) and (block.covered >= size["i"] or size["i"] % block.covered == 0)
    biases = block.outputs * min(size["l"], MAX_TILE) <= WARP * block.warps
    if not (divides and covers and biases and block.teams * block.warps <= MAX_WARPS):
        return False
    if rung == "tuned":
        return not block.strided and block.static_bytes(size) <= MAX_STATIC
    return block.staged_bytes(size) + block.sum_bytes(size) <= MAX_SHARED


def blocks(rung: str, size: Size) -> Iterator[Block]:
    """The candidates of a rung for a layer."""
    for values in itertools.product(TEAMS, WARPS, OUTPUTS, GROUPS, CHANNELS_OF_LANE, (False, True)):
        block = Block(*values)
        if fits(rung, size, block):
            yield block


def candidates() -> list[Candidate]:
    """The candidates of all tuned rungs at all recorded layers."""
    return [
        Candidate(rung, size, _values(block), launch(rung, size, block))
        for size in ladder.problem.recorded
        for rung in BLOCKS
        for block in blocks(rung, size)
    ]


def starts(among: Sequence[Candidate]) -> list[Candidate]:
    """The first candidate in the search of each rung and layer: the one with fewest values away from the middle."""
    chosen: dict[tuple[str, Shape], Candidate] = {}
    for one in among:
        key = (one.rung, shape_of(one.size))
        if key not in chosen or _from_middle(one) < _from_middle(chosen[key]):
            chosen[key] = one
    return list(chosen.values())


def held(among: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that today's tables have."""
    return [one for one in among if one.values == _held(one.rung, one.size)]


def _held(rung: str, size: Size) -> tuple[int, ...] | None:
    block = BLOCKS[rung].get(shape_of(size))
    return block and _values(block)


def _from_middle(one: Candidate) -> int:
    return sum(value != middle for value, middle in zip(one.values, MIDDLE, strict=True))


def tables(trials: Sequence[Trial]) -> dict[str, dict[str, Any]]:
    """The table of each rung: for each layer the fastest block, or the one of today's table if it is nearly as fast."""
    made: dict[str, dict[str, Any]] = {
        "channels": {
            "columns": ["i", "o", "l", "k", "channels"],
            "rows": [[*shape, channels] for shape, channels in CHANNELS.items()],
        }
    }
    for rung in BLOCKS:
        best = {
            shape_of(size): fastest(trials, rung, size, _held(rung, size)).candidate.values
            for size in ladder.problem.recorded
        }
        rows = [[*shape, *values[:-1], bool(values[-1])] for shape, values in best.items()]
        made[rung] = {"columns": ["i", "o", "l", "k", *COLUMNS], "rows": rows}
    return made


def compile_all() -> None:
    """Compile the candidates of the first round into CuPy's cache."""
    search.compile_all(ladder.name, starts(candidates()))


def record_search(folder: Path | None = None) -> Path:
    """Search, and write trials and tables below ``folder`` (``records/<gpu>`` by default); the path of the trials."""
    among = candidates()
    return search.run(ladder, among, COLUMNS, tables, folder, starts(among), held(among))


def _values(block: Block) -> tuple[int, ...]:
    return (block.teams, block.warps, block.outputs, block.groups, block.channels, int(block.strided))
