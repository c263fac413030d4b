"""The launches of the rung ``in_block``: blocks make halves of weights and pixels, and share pixels and input maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from climb.bench.problem import Launch, Size, Tensor, ceil_div
from kernels.conv_layers.convlayer_tensor import launches as common
from kernels.conv_layers.convlayer_tensor.launches import (
    DEPTH,
    EIGHT,
    FLOAT,
    OUTS,
    PITCH,
    TAP_HALVES,
    WHOLE,
    takes_whole_maps,
)

#: The kernel's kThreads, kConsumers, a tile, kSlots, kRawPitch, and slots of floats by whether it copies whole maps.
THREADS, CONSUMERS, HIGH, WIDE, SLOTS, RAW_PITCH, RAW_SLOTS = 512, 256, 14, 16, 2, 24, {True: 4, False: 3}
#: Threads of the last pass.
ADD_THREADS = 128
#: What a tile costs beside its steps, what a last pass does, and what a part of one image does there, in steps.
STORE, LAST_PASS, LAST_PART = 0.5, 1.5, 0.05


@dataclass(frozen=True)
class Cut:
    """The rung's cut of a layer.

    Tiles of 16 x 14 pixels, which ``across`` blocks share, and ``parts`` of the input maps of ``steps`` steps each.
    """

    parts: int
    steps: int
    across: int
    #: Work of the busiest SM, in steps.
    cost: float


def _cuts(size: Size) -> Iterator[Cut]:
    groups, steps = ceil_div(size["c_out"], OUTS), ceil_div(size["c_in"], DEPTH)
    tiles = _tiles(size)
    for wanted in (1, 2, 4, 8, 16):
        each = ceil_div(steps, wanted)
        parts = ceil_div(steps, each)
        own = ceil_div(tiles, max(1, common.BLOCKS[1] // (groups * parts)))
        across = ceil_div(tiles, own)
        waves = ceil_div(across * groups * parts, common.BLOCKS[1])
        last_pass = LAST_PASS + LAST_PART * parts if parts > 1 else 0
        yield Cut(parts, each, across, waves * own * (each + STORE) + last_pass)


def _tiles(size: Size) -> int:
    return ceil_div(size["n"], WIDE) * ceil_div(size["n"], HIGH) * size["batch"]


def _blocks(size: Size) -> int:
    """Tiles of all groups of output maps."""
    return _tiles(size) * ceil_div(size["c_out"], OUTS)


def cut(size: Size) -> Cut:
    """The cut with the least work for the busiest SM."""
    return min(_cuts(size), key=lambda one: one.cost)


def launches(parts: int) -> Callable[[Size], tuple[Launch, ...]]:
    """The launch, for ``parts`` halves of each factor, and perhaps a last pass."""

    def of(size: Size) -> tuple[Launch, ...]:
        one, n, maps, whole = cut(size), size["n"], size["batch"] * size["c_in"], takes_whole_maps(size)
        row = size["c_in"] * common.TAPS
        boxes = Tensor("weights", (size["c_out"], row), (OUTS // 2, PITCH), "float32", l2_promotion=256)
        if whole:
            pixels = Tensor("input", (maps, n * n), (8, n * n), "float32", l2_promotion=256)
        else:
            pixels = Tensor("input", (maps, n, n), (8, HIGH + 2, RAW_PITCH), "float32", l2_promotion=256)
        extents = [np.int32(size[key]) for key in ("n", "c_in", "c_out", "batch")]
        halves = parts * (TAP_HALVES * 2 + DEPTH // 8 * (HIGH + 2) * (WIDE + 4) * EIGHT)
        raw = OUTS // 2 * PITCH + 8 * (WHOLE if whole else (HIGH + 2) * RAW_PITCH)
        shared = SLOTS * halves + RAW_SLOTS[whole] * raw * FLOAT
        to = "sums" if one.parts > 1 else "output"
        name = f"convlayer_in_block<{parts}, {str(whole).lower()}>"
        grid = (one.parts, one.across, ceil_div(size["c_out"], OUTS))
        first = Launch(name, grid, (THREADS,), ("weights", boxes, pixels, to, *extents, np.int32(one.steps)), shared)
        if one.parts == 1:
            return (first,)
        name = f"convlayer_add_parts<{ADD_THREADS}, {one.parts}>"
        blocks = _blocks(size) * HIGH * CONSUMERS // ADD_THREADS
        return (first, Launch(name, (blocks,), (ADD_THREADS,), ("sums", "output", *extents), pdl=True))

    return of


def workspace(size: Size) -> Mapping[str, tuple[tuple[int, ...], str]]:
    """Room for the output of each part of the input maps."""
    parts = cut(size).parts
    return {"sums": ((parts, _blocks(size), HIGH, CONSUMERS, 4), "float32")} if parts > 1 else {}
