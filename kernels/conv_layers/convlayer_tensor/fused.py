"""The launches of the rung ``fused``: halves of weights are made first, those of pixels where they are multiplied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from climb.bench.problem import Launch, Size, Tensor, ceil_div
from kernels.conv_layers.convlayer_tensor import launches as common
from kernels.conv_layers.convlayer_tensor.launches import DEPTH, EIGHT, FLOAT, OUTS, TAP_HALVES, WIDE, extents_fit

#: Threads of the first launch and of the second, and the kernel's kPixelSlots, kRawSlots and kRawLeft.
TAP_THREADS, THREADS, PIXEL_SLOTS, RAW_SLOTS, RAW_LEFT = 32, 512, 3, 3, 4
#: Tiles: strips of eight pixels beside each other, and rows.
SHAPES = ((2, 8), (1, 16), (1, 14))
#: Halves of a row of the tensor map of weights; two boxes of rows are a step.
ROW = 64
#: What it costs to begin and to end a block, in rows of eight pixels times steps.
START = 40


def fits(size: Size) -> str | None:
    """Why the rung refuses a size, or None."""
    if size["n"] % 4:
        return "n must be a multiple of 4, because a row of pixels is a multiple of 16 bytes"
    return extents_fit(size)


@dataclass(frozen=True)
class Cut:
    """How the rung cuts a layer.

    Tiles of ``strips`` times 8 x ``high`` pixels, which ``across`` blocks share. A cluster of ``ranks`` copies weights
    once.
    """

    strips: int
    high: int
    ranks: int
    across: int
    #: Work of the busiest SM: rows of pixels times steps.
    cost: float


def _cuts(size: Size) -> Iterator[Cut]:
    groups, steps = ceil_div(size["c_out"], OUTS), ceil_div(size["c_in"], DEPTH)
    for strips, high in SHAPES:
        tiles = ceil_div(size["n"], strips * WIDE) * ceil_div(size["n"], high) * size["batch"]
        own = ceil_div(tiles, max(1, common.BLOCKS[1] // groups))
        across = ceil_div(tiles, own)
        if steps <= common.TAP_SLOTS and across < tiles and (across + 1) * groups <= common.BLOCKS[1]:
            across += across % 2
        waves = ceil_div(across * groups, common.BLOCKS[1])
        # The blocks of a cluster copy halves of the same weights, as often.
        together = across % 2 == 0 and (steps <= common.TAP_SLOTS or tiles % across == 0)
        yield Cut(strips, high, 2 if together else 1, across, waves * (strips * high * own * steps + START))


def cut(size: Size) -> Cut:
    """The cut with the least work for the busiest SM."""
    return min(_cuts(size), key=lambda one: one.cost)


def _steps_of_taps(size: Size) -> int:
    return ceil_div(size["c_out"], OUTS) * ceil_div(size["c_in"], DEPTH)


def launches(parts: int) -> Callable[[Size], tuple[Launch, ...]]:
    """The two launches, for ``parts`` halves of each factor."""

    def of(size: Size) -> tuple[Launch, ...]:
        one, n = cut(size), size["n"]
        extents = [np.int32(size[key]) for key in ("n", "c_in", "c_out", "batch")]
        units = _steps_of_taps(size) * (OUTS // 8) * (DEPTH // 8)
        first = Launch(
            f"convlayer_to_taps<{parts}, {TAP_THREADS}, {1 if size['c_in'] % 4 else 4}>",
            (ceil_div(units, TAP_THREADS // 32),),
            (TAP_THREADS,),
            ("weights", "taps", *extents[1:3]),
        )
        rows = parts * TAP_HALVES // ROW
        taps = Tensor("taps", (_steps_of_taps(size) * rows, ROW), (rows // 2, ROW), "float16", l2_promotion=256)
        pitch = ceil_div(one.strips * WIDE + 1 + RAW_LEFT, 4) * 4
        maps = Tensor(
            "input",
            (size["batch"] * size["c_in"], n, n),
            (DEPTH, one.high + 2, pitch),
            "float32",
            l2_promotion=256,
        )
        halves = PIXEL_SLOTS * parts * DEPTH // 8 * (one.high + 2) * one.strips * (WIDE + 2) * EIGHT
        raw = RAW_SLOTS * DEPTH * (one.high + 2) * pitch * FLOAT
        shared = ceil_div(common.TAP_SLOTS * parts * TAP_HALVES * 2 + halves + raw, 128) * 128
        name = f"convlayer_fused<{parts}, {one.strips}, {one.high}, {one.ranks}>"
        grid = (one.across, ceil_div(size["c_out"], OUTS))
        return (first, Launch(name, grid, (THREADS,), (taps, maps, "output", *extents), shared, pdl=True))

    return of


def workspace(parts: int) -> Callable[[Size], Mapping[str, tuple[tuple[int, ...], str]]]:
    """Room for the halves of the weights."""
    return lambda size: {"taps": ((_steps_of_taps(size), parts * TAP_HALVES), "float16")}
