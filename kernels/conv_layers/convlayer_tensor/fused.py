"""The launches of the rungs that make halves of pixels where they multiply: ``fused`` and those that follow from it.

Halves of weights are made in a launch before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from climb.bench.problem import Launch, Size, Tensor, ceil_div
from kernels.conv_layers.convlayer_tensor import launches as common
from kernels.conv_layers.convlayer_tensor.launches import DEPTH, EIGHT, FLOAT, OUTS, TAP_HALVES, WIDE, extents_fit

#: Threads of the first launch and of the second, and the kernel's kPixelSlots and kRawLeft.
TAP_THREADS, THREADS, PIXEL_SLOTS, RAW_LEFT = 32, 512, 4, 4
#: Maps of the boxes of each rung, and the kernel's kRawSlots.
BOXES = {"fused": (8, 4), "whole_steps": (DEPTH, 2), "early_release": (DEPTH, 2), "overlapped": (DEPTH, 2)}
#: Tiles: strips of eight pixels beside each other, and rows.
SHAPES = ((2, 8), (1, 14))
#: What it costs to begin and to end a block, and to read the weights of a step, in rows of eight pixels times steps.
START, WEIGHTS = 40, 2


def fits(size: Size) -> str | None:
    """Return why the rung refuses a size, or None."""
    if size["n"] % 4:
        return "n must be a multiple of 4, because a row of pixels is a multiple of 16 bytes"
    return extents_fit(size)


@dataclass(frozen=True)
class Cut:
    """The rung's cut of a layer.

    Tiles of ``strips`` times 8 x ``high`` pixels, which ``across`` blocks share.
    """

    strips: int
    high: int
    across: int
    #: Work of the busiest SM: rows of pixels times steps.
    cost: float


def _cuts(size: Size) -> Iterator[Cut]:
    groups, steps = ceil_div(size["c_out"], OUTS), ceil_div(size["c_in"], DEPTH)
    for strips, high in SHAPES:
        tiles = ceil_div(size["n"], strips * WIDE) * ceil_div(size["n"], high) * size["batch"]
        own = ceil_div(tiles, max(1, common.BLOCKS[1] // groups))
        across = ceil_div(tiles, own)
        waves = ceil_div(across * groups, common.BLOCKS[1])
        yield Cut(strips, high, across, waves * ((strips * high + WEIGHTS) * own * steps + START))


def cut(size: Size) -> Cut:
    """The cut with the least work for the busiest SM."""
    return min(_cuts(size), key=lambda one: one.cost)


def _steps_of_taps(size: Size) -> int:
    return ceil_div(size["c_out"], OUTS) * ceil_div(size["c_in"], DEPTH)


def launches(parts: int, rung: str = "fused") -> Callable[[Size], tuple[Launch, ...]]:
    """The two launches of one of these rungs, for ``parts`` halves of each factor."""
    box, raw_slots = BOXES[rung]
    kernel = "convlayer_overlapped" if rung == "overlapped" else "convlayer_fused"

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
        pitch = ceil_div(one.strips * WIDE + 1 + RAW_LEFT, 4) * 4
        maps = Tensor(
            "input",
            (size["batch"] * size["c_in"], n, n),
            (box, one.high + 2, pitch),
            "float32",
            l2_promotion=256,
        )
        halves = PIXEL_SLOTS * parts * DEPTH // 8 * (one.high + 2) * one.strips * (WIDE + 2) * EIGHT
        raw = raw_slots * box * (one.high + 2) * pitch * FLOAT
        shared = ceil_div(common.TAP_SLOTS * parts * TAP_HALVES * 2 + halves + raw, 128) * 128
        name = f"{kernel}<{parts}, {one.strips}, {one.high}>"
        grid = (one.across, ceil_div(size["c_out"], OUTS))
        return (first, Launch(name, grid, (THREADS,), ("taps", maps, "output", *extents), shared, pdl=True))

    return of


def workspace(parts: int) -> Callable[[Size], Mapping[str, tuple[tuple[int, ...], str]]]:
    """Room for the halves of the weights."""
    return lambda size: {"taps": ((_steps_of_taps(size), parts * TAP_HALVES), "float16")}
