"""The launches of the rungs from ``tuned`` on, whose block is chosen for each layer."""

from __future__ import annotations

from collections.abc import Callable

from climb.bench.problem import Launch, Size, ceil_div
from kernels.conv1d.conv1d import tuning
from kernels.conv1d.conv1d.launches import args, filter_width, grid
from kernels.conv1d.conv1d.problem import MAX_TILE
from kernels.conv1d.conv1d.tuning import Block


def launch(rung: str, size: Size, block: Block) -> Launch:
    """The launch of a tuned rung with this block."""
    if rung == "tuned":
        return _launch(rung, size, block, (), row_floats=block.channels * size["l"], shared_mem=0)
    more = (block.blocks_per_sm(size), str(block.strided).lower())
    return _launch(rung, size, block, more, row_floats=size["l"], shared_mem=block.staged_bytes(size))


def _launch(
    rung: str, size: Size, block: Block, more: tuple[int | str, ...], *, row_floats: int, shared_mem: int
) -> Launch:
    """The launch of a rung. It loads float4s if tiles have complete rows and ``row_floats``, the neighbouring floats of
    a lane, is a multiple of four; ``more`` are template arguments after those of the block."""
    wide = size["l"] <= MAX_TILE and row_floats % 4 == 0 and size["i"] % block.channels == 0
    shape = (size["l"], size["k"], 4 if wide else 1, filter_width(size))
    of_block = (block.teams, block.warps, block.outputs, block.groups, block.channels)
    name = f"conv1d_{rung}<{', '.join(map(str, (*shape, *of_block, *more)))}>"
    outputs, tiles = grid(size)
    blocks = (ceil_div(outputs, block.teams * block.outputs), tiles)
    return Launch(name, blocks, (block.threads,), args(size), shared_mem)


def chosen(rung: str) -> Callable[[Size], tuple[Launch, ...]]:
    """The launches of a tuned rung with the block that is chosen for the layer."""
    return lambda size: (launch(rung, size, tuning.choose(rung, size)),)
