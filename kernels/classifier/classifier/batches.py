"""The launches of the rungs for batches: tiles of outputs and samples, split along the inputs to fill the GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from climb.bench.problem import Launch, Size, ceil_div
from kernels.classifier.classifier import tuning
from kernels.classifier.classifier.launches import args
from kernels.classifier.classifier.problem import FLOAT, WARP
from kernels.classifier.classifier.tuning import packs_of, width

#: ``batched``: the kernel's kTileRows and kTileSamples, kThreads and kStages.
TILE_ROWS, TILE_SAMPLES, BATCHED_THREADS, STAGES = 32, 32, 256, 5
#: ``split_k_per_warp``: the kernel's kTileRows and kTileSamples, kStep and kWarps, and its shared memory in bytes.
WARP_ROWS, WARP_SAMPLES, WARP_STEP, WARPS = 64, 32, 16, 4
WARP_BYTES = FLOAT * WARPS * 3 * (WARP_ROWS + WARP_SAMPLES) * (WARP_STEP + 4)

#: Pieces of the inputs, and steps of each block or warp.
Plan = Callable[[Size], tuple[int, int]]


def batched_plan(size: Size) -> tuple[int, int]:
    """Pieces of the inputs, and steps of a pack per lane in each: as many pieces as make the tiles a block per SM."""
    steps = max(1, ceil_div(packs_of(size), WARP))
    tiles = ceil_div(size["outputs"], TILE_ROWS) * ceil_div(size["batch"], TILE_SAMPLES)
    each = ceil_div(steps, max(1, min(tuning.SMS // max(1, tiles), steps // STAGES)))
    return ceil_div(steps, each), each


def per_warp_plan(size: Size) -> tuple[int, int]:
    """Pieces of the inputs, and steps of each warp: as many pieces as make the tiles two blocks per SM."""
    steps = max(1, ceil_div(size["inputs"], WARP_STEP))
    tiles = ceil_div(size["outputs"], WARP_ROWS) * ceil_div(size["batch"], WARP_SAMPLES)
    pieces = max(1, min(2 * tuning.SMS // max(1, tiles), steps // WARPS))
    each = ceil_div(steps, pieces * WARPS)
    return ceil_div(steps, each * WARPS), each


def _tiles(
    kernel: str, plan: Plan, tile: tuple[int, int], threads: int, shared_mem: int, size: Size
) -> tuple[Launch, ...]:
    """A block per tile and piece; where there are several pieces, a second pass adds up their sums."""
    pieces, steps = plan(size)
    n = size["outputs"] * size["batch"]
    weights, given, output, *extents = args(size)
    grid = (ceil_div(size["outputs"], tile[0]), pieces, ceil_div(size["batch"], tile[1]))
    taken = (weights, given, output if pieces == 1 else "sums", *extents, np.int32(size["batch"]), np.int32(steps))
    first = Launch(f"{kernel}<{width(size)}>", grid, (threads,), taken, shared_mem)
    if pieces == 1:
        return (first,)
    last_args = ("sums", "output", np.uint64(n), np.int32(pieces))
    return (first, Launch(f"add_pieces<{threads}>", (ceil_div(n, threads),), (threads,), last_args))


def batched(size: Size) -> tuple[Launch, ...]:
    """All warps of a block share a tile, in stages."""
    shared_mem = STAGES * (TILE_ROWS + TILE_SAMPLES) * WARP * FLOAT * width(size)
    tile = (TILE_ROWS, TILE_SAMPLES)
    return _tiles("classifier_batched", batched_plan, tile, BATCHED_THREADS, shared_mem, size)


def split_k_per_warp(size: Size) -> tuple[Launch, ...]:
    """Each warp of a block has a slice of the inputs for the whole tile."""
    tile = (WARP_ROWS, WARP_SAMPLES)
    return _tiles("classifier_split_k_per_warp", per_warp_plan, tile, WARP * WARPS, WARP_BYTES, size)


def sums(plan: Plan) -> Callable[[Size], Mapping[str, tuple[tuple[int, ...], str]]]:
    """Scratch of these rungs: the outputs once for each piece."""

    def workspace(size: Size) -> Mapping[str, tuple[tuple[int, ...], str]]:
        pieces, _ = plan(size)
        return {"sums": ((pieces, size["batch"], size["outputs"]), "float32")} if pieces > 1 else {}

    return workspace
