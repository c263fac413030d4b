"""The launch of the rung ``shares``: all blocks run at the same time, and each holds all of its factors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from climb.bench.problem import Launch, Size, Tensor, ceil_div
from kernels.conv_layers.convlayer_tensor import launches as common
from kernels.conv_layers.convlayer_tensor.launches import DEPTH, EIGHT, FLOAT, OUTS, PITCH

#: The kernel's kGroups, kGroupThreads, kBoxOuts and kMostSteps, and kWide for the cuts to choose from.
GROUPS, GROUP_THREADS, BOX_OUTS, MOST_STEPS, WIDE = 3, 128, 32, 4, (112, 104, 96, 64, 32)
#: The most shared memory of a block, and blocks that an H200 runs at a time.
MOST_SHARED, RESIDENT = 227 * 1024, 132


@dataclass(frozen=True)
class Cut:
    """The rung's cut of a layer.

    Runs of whole rows, at most ``wide`` pieces; ``parts`` of the input maps, each of at most ``steps`` steps.
    """

    wide: int
    parts: int
    steps: int


def _tiles(size: Size, wide: int) -> int:
    """Runs of all images, for each group of output maps."""
    rows = (wide + 1) // (size["n"] + 1)
    return ceil_div(size["n"], rows) * size["batch"] * ceil_div(size["c_out"], OUTS)


def _shared(size: Size, one: Cut, halves: int) -> int:
    """Bytes for the factors of all steps, or for two of the three warpgroups' sums."""
    pieces = one.wide + 2 * (size["n"] + 1) + 2
    factors = one.steps * (OUTS * PITCH * FLOAT + halves * DEPTH // 8 * pieces * EIGHT)
    return max(factors, (GROUPS - 1) * OUTS * one.wide * FLOAT)


def _cuts(size: Size) -> Iterator[Cut]:
    steps = ceil_div(size["c_in"], DEPTH)
    for wide in WIDE:
        if size["n"] > wide:
            continue
        parts = min(steps, RESIDENT // _tiles(size, wide))
        if parts == 0:
            continue
        one = Cut(wide, parts, ceil_div(steps, parts))
        if one.steps <= MOST_STEPS and _shared(size, one, 2) <= MOST_SHARED:
            yield one


def fits(size: Size) -> str | None:
    """Return why the rung refuses a size, or None."""
    if reason := common.rows_of_weights_fit(size):
        return reason
    if not any(_cuts(size)):
        return "the layer is too large: all blocks run at the same time, and each holds all of its factors"
    return None


def cut(size: Size) -> Cut:
    """The cut with the fewest products for a block."""
    return min(_cuts(size), key=lambda one: one.wide * one.steps)


def launches(halves: int) -> Callable[[Size], tuple[Launch, ...]]:
    """The launch, for ``halves`` halves of each factor."""

    def of(size: Size) -> tuple[Launch, ...]:
        one, groups = cut(size), ceil_div(size["c_out"], OUTS)
        row = size["c_in"] * common.TAPS
        weights = Tensor("weights", (size["c_out"], row), (BOX_OUTS, PITCH), "float32")
        name = f"convlayer_shares<{halves}, {one.wide}, {size['n']}, {one.steps}>"
        grid = (one.parts, _tiles(size, one.wide) // groups, groups)
        extents = (np.int32(size[key]) for key in ("c_in", "c_out"))
        taken = (weights, "input", "sums", "output", *extents)
        return (Launch(name, grid, (GROUPS * GROUP_THREADS,), taken, _shared(size, one, halves)),)

    return of


def workspace(size: Size) -> Mapping[str, tuple[tuple[int, ...], str]]:
    """Room for the sums of each part."""
    one = cut(size)
    return {"sums": ((one.parts, _tiles(size, one.wide), one.wide // 8, GROUP_THREADS, 4), "float32")}
