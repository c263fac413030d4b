"""The block that each tuned rung takes for a layer: the tables of ``records/<gpu>/tuning/conv1d.json``, and rules.

``CHANNELS`` and ``BLOCKS`` hold the tables; tests replace them, or ``SMS``, here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climb.bench import records
from climb.bench.problem import Size, ceil_div
from climb.bench.records.kinds import TuningRecord, TuningTable
from kernels.conv1d.conv1d.problem import FLOAT, MAX_TILE, WARP

#: Channels in, channels out, length, taps.
Shape = tuple[int, int, int, int]

#: SMs of the GPU for which blocks are chosen, an H200. Results do not depend on it.
SMS = 132
#: Shared memory of an SM of compute capability 9.0, what the system reserves of it for each block, and the most that
#: a block may have: all dynamic, or 48 KB of static.
SHARED_OF_SM, RESERVED, MAX_SHARED, MAX_STATIC = 228 << 10, 1 << 10, 227 << 10, 48 << 10
#: Threads and blocks of an SM that the rungs with asynchronous copies ask the compiler to leave registers for.
RESIDENT_THREADS, RESIDENT_BLOCKS = 1280, 16


@dataclass(frozen=True)
class Block:
    """A block of the tuned rungs.

    ``teams`` of ``warps`` warps share a block; a team computes ``outputs`` output channels. A warp loads ``groups``
    chunks at once, a lane has ``channels`` of each. ``strided``: the channels of a lane lie 32 apart.
    """

    teams: int
    warps: int
    outputs: int
    groups: int
    channels: int
    strided: bool = False

    @property
    def threads(self) -> int:
        return WARP * self.teams * self.warps

    @property
    def covered(self) -> int:
        """Input channels that a team loads at once."""
        return self.warps * self.groups * self.channels * WARP

    def sum_bytes(self, size: Size) -> int:
        """Shared memory that the sums of the warps take at most."""
        return FLOAT * self.teams * self.warps * max(WARP, 2 * self.outputs * min(size["l"], MAX_TILE))

    def static_bytes(self, size: Size) -> int:
        """Shared memory of a block of ``tuned``: one chunk of each filter, and the sums."""
        filters = self.teams * self.warps * self.outputs * WARP * self.channels * size["k"]
        return FLOAT * filters + self.sum_bytes(size)

    def staged_bytes(self, size: Size) -> int:
        """Dynamic shared memory of the rungs with asynchronous copies: all chunks that the warps load at once."""
        chunks = self.teams * self.warps * self.groups * self.outputs
        return FLOAT * chunks * WARP * self.channels * size["k"]

    def blocks_per_sm(self, size: Size) -> int:
        """Blocks that an SM is to hold at once: its share of the grid, as far as threads and shared memory go."""
        share = ceil_div(max(1, size["o"]) // (self.teams * self.outputs) or 1, SMS)
        fit = SHARED_OF_SM // (self.staged_bytes(size) + self.sum_bytes(size) + RESERVED)
        return max(1, min(share, fit, RESIDENT_THREADS // self.threads, RESIDENT_BLOCKS))


def table_path(gpu: str = records.DEFAULT_GPU) -> Path:
    """The file of the tables.

    A GPU that nobody has searched on takes the blocks of the book's GPU, and ``climb record`` says so, or keeps those
    that it was measured with.
    """
    return records.shown_file("tuning/conv1d.json", gpu)


def search_path(gpu: str = records.DEFAULT_GPU) -> Path:
    """The file with the trials of a search: on the book's GPU, if nobody has searched on this one."""
    return records.shown_file("search/conv1d.json", gpu)


def _rows(tables: dict[str, TuningTable], rung: str) -> dict[Shape, tuple[Any, ...]]:
    return {row[:4]: row[4:] for row in tables[rung].rows}


_TABLES = records.load(table_path(), TuningRecord).tables
#: Channels a thread for each shape, in the rungs from ``channels`` to ``separate_buffers``.
CHANNELS: dict[Shape, int] = {shape: row[0] for shape, row in _rows(_TABLES, "channels").items()}
#: The block of each tuned rung for each shape.
BLOCKS: dict[str, dict[Shape, Block]] = {
    rung: {shape: Block(*row) for shape, row in _rows(_TABLES, rung).items()} for rung in _TABLES if rung != "channels"
}


def shape_of(size: Size) -> Shape:
    """A size as the tables name it."""
    return (size["i"], size["o"], size["l"], size["k"])


def channels_of_thread(size: Size) -> int:
    """Channels a thread: those of the table; elsewhere two for many channels, if their number is even, or one."""
    return CHANNELS.get(shape_of(size)) or (2 if size["i"] >= 512 and size["i"] % 2 == 0 else 1)


def choose(rung: str, size: Size) -> Block:
    """The block of a tuned rung: that of its table, else that of the table of ``cp_async``, else by rule."""
    if known := BLOCKS[rung].get(shape_of(size)):
        return known
    if rung == "tuned":
        return _static_block(size)
    return BLOCKS["cp_async"].get(shape_of(size)) or _dynamic_block(size)


def _static_block(size: Size) -> Block:
    """One or two channels a lane, and as many warps as load all channels at once, as far as shared memory goes."""
    channels = 2 if size["i"] > 512 else 1
    groups = 2 if size["i"] > 256 else 1
    warps = min(16, max(1, ceil_div(size["i"], WARP * channels * groups)))
    while warps > 1 and Block(1, warps, 1, groups, channels).static_bytes(size) > MAX_STATIC:
        warps //= 2
    return Block(1, warps, 1, groups, channels)


def _dynamic_block(size: Size) -> Block:
    """Four warps an output channel with four channels a lane, as far as shared memory for two blocks an SM goes."""
    channels, warps = 4 if size["i"] > 256 else 1, 4
    groups = min(4, max(1, ceil_div(size["i"], WARP * channels * warps)))
    while groups * warps > 1 and Block(1, warps, 1, groups, channels).staged_bytes(size) > MAX_SHARED // 2:
        groups, warps = (groups // 2, warps) if groups > 1 else (1, warps // 2)
    return Block(1, warps, 1, groups, channels)
