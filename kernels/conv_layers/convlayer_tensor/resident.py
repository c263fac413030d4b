"""The launch of the rung ``resident``: weights that stay become halves in the block, and no launch comes before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from climb.bench.problem import Launch, Size, Tensor, ceil_div
from kernels.conv_layers.convlayer_tensor import fused
from kernels.conv_layers.convlayer_tensor import launches as common
from kernels.conv_layers.convlayer_tensor.launches import DEPTH, EIGHT, FLOAT, OUTS, WIDE

#: The kernel's kOutsAtOnce, kPixelSlots and kRawSlots.
OUTS_AT_ONCE, PIXEL_SLOTS, RAW_SLOTS = 8, 3, 3


def fits(size: Size) -> str | None:
    """Return why the rung refuses a size, or None."""
    if size["c_in"] > common.TAP_SLOTS * DEPTH:
        return f"c_in may be at most {common.TAP_SLOTS * DEPTH}, because all weights stay"
    if size["c_in"] % 4:
        return "c_in must be a multiple of 4, because a row of weights is a multiple of 16 bytes"
    return fused.fits(size)


def launches(parts: int) -> Callable[[Size], tuple[Launch, ...]]:
    """The launch, for ``parts`` halves of each factor."""

    def of(size: Size) -> tuple[Launch, ...]:
        one, n = fused.cut(size), size["n"]
        pieces = 2 if size["c_in"] % 8 else 1
        maps = 8 // pieces
        row = maps * common.TAPS
        shape, rows = (size["c_out"], size["c_in"] // maps, row), (OUTS_AT_ONCE, pieces, row)
        weights = Tensor("weights", shape, rows, "float32", l2_promotion=256)
        pitch = ceil_div(one.strips * WIDE + 1 + fused.RAW_LEFT, 4) * 4
        box = (DEPTH, one.high + 2, pitch)
        pixels = Tensor("input", (size["batch"] * size["c_in"], n, n), box, "float32", l2_promotion=256)
        floats = common.TAP_SLOTS * OUTS * DEPTH * common.TAPS + RAW_SLOTS * DEPTH * (one.high + 2) * pitch
        halves = PIXEL_SLOTS * parts * DEPTH // 8 * (one.high + 2) * one.strips * (WIDE + 2) * EIGHT
        extents = [np.int32(size[key]) for key in ("n", "c_in", "c_out", "batch")]
        taken = (weights, pixels, "output", *extents, np.int32(pieces))
        name = f"convlayer_resident<{parts}, {one.strips}, {one.high}>"
        grid = (one.across, ceil_div(size["c_out"], OUTS))
        shared = ceil_div(floats * FLOAT + halves, 128) * 128
        return (Launch(name, grid, (fused.THREADS,), taken, shared),)

    return of
