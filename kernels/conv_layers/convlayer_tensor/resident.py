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
    return fused.fits(size)


def _boxes(size: Size, pieces: int) -> Tensor:
    """The weights in boxes of 8 output maps and 8 input maps, which are ``pieces`` rows of each output map."""
    maps = 8 // pieces
    shape = (size["c_out"], size["c_in"] // maps, maps * common.TAPS)
    return Tensor("weights", shape, (OUTS_AT_ONCE, pieces, shape[2]), "float32", l2_promotion=256)


def launches(parts: int) -> Callable[[Size], tuple[Launch, ...]]:
    """The launch, for ``parts`` halves of each factor."""

    def of(size: Size) -> tuple[Launch, ...]:
        one, n = fused.cut(size), size["n"]
        pitch = ceil_div(one.strips * WIDE + 1 + fused.RAW_LEFT, 4) * 4
        box = (DEPTH, one.high + 2, pitch)
        pixels = Tensor("input", (size["batch"] * size["c_in"], n, n), box, "float32", l2_promotion=256)
        floats = common.TAP_SLOTS * OUTS * DEPTH * common.TAPS + RAW_SLOTS * DEPTH * (one.high + 2) * pitch
        halves = PIXEL_SLOTS * parts * DEPTH // 8 * (one.high + 2) * one.strips * (WIDE + 2) * EIGHT
        extents = [np.int32(size[key]) for key in ("n", "c_in", "c_out", "batch")]
        pieces = 0 if size["c_in"] % 4 else 2 if size["c_in"] % 8 else 1
        taken = ("weights", _boxes(size, pieces) if pieces else pixels, pixels, "output", *extents)
        name = f"convlayer_resident<{parts}, {one.strips}, {one.high}, {pieces}>"
        grid = (one.across, ceil_div(size["c_out"], OUTS))
        shared = ceil_div(floats * FLOAT + halves, 128) * 128
        return (Launch(name, grid, (fused.THREADS,), taken, shared),)

    return of
