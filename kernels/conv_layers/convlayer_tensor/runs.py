"""The launches of the rung ``runs``: tiles are runs of pixels, of a length that fits the number of SMs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from climb.bench.problem import Launch, Size, Tensor, ceil_div
from kernels.conv_layers.convlayer_tensor import launches as common
from kernels.conv_layers.convlayer_tensor.launches import DEPTH, EIGHT, FLOAT, OUTS, PITCH

#: Threads of the first launch and of the second, kClearedEach, kGroups, and kWide for the cuts to choose from.
FIRST_THREADS, THREADS, CLEARED_EACH, GROUPS, WIDE = 128, 384, 8, 2, (112, 104, 96, 32)
#: The most shared memory of a block, and blocks that an H200 runs at a time, alone or two in a cluster.
MOST_SHARED, RESIDENT = 227 * 1024, 132
#: What a step costs for each byte copied, if that takes longer than its products; what it costs to start and end a
#: block, to add up the sums of a cluster, and to clear the output and add to it. In pixels of a warpgroup times steps,
#: 15 ns each: that of bytes at the rate at which L2 was read, the others from times of first drafts.
BYTE, START, MEETING, ADDING = 1.6e-3, 100, 60, 120


@dataclass(frozen=True)
class Cut:
    """The rung's cut of a layer.

    Runs of twice ``wide`` pixels. The input maps are split over the ``ranks`` of a cluster, and over ``parts``
    clusters, which add to the output. ``slots`` is the kernel's kSlots.
    """

    wide: int
    ranks: int
    parts: int
    slots: int
    #: Work of the busiest SM: pixels of a warpgroup times steps.
    cost: float = 0.0


def _pieces(size: Size, wide: int) -> int:
    """Pieces of a run, with those of the other taps."""
    return GROUPS * wide + 2 * (size["n"] + 1) + 2


def _runs(size: Size, wide: int) -> int:
    """Runs of an image."""
    return max(1, ceil_div(size["n"] * (size["n"] + 1) - 1, GROUPS * wide))


def _length(size: Size, wide: int) -> int:
    """Pieces of a plane: those of all runs, and of the other taps of the last."""
    return (_runs(size, wide) - 1) * GROUPS * wide + _pieces(size, wide)


def _slot(size: Size, wide: int, halves: int) -> int:
    """Bytes of a slot, for ``halves`` halves of each pixel."""
    return OUTS * PITCH * FLOAT + halves * DEPTH // 8 * _pieces(size, wide) * EIGHT


def _shared(size: Size, one: Cut, halves: int) -> int:
    given = one.wide * OUTS * FLOAT if one.ranks > 1 else 0
    return one.slots * _slot(size, one.wide, halves) + given


def fits(size: Size) -> str | None:
    """Return why the rung refuses a size, or None."""
    if reason := common.rows_of_weights_fit(size):
        return reason
    if not any(_cuts(size)):
        return "n is too large: the pixels above and below a run have no room in shared memory"
    if max(_runs(size, wide) for wide in WIDE) * size["batch"] > common.MAX_MAPS:
        return f"the runs of all images may be at most {common.MAX_MAPS}, the most blocks in y"
    return None


def _cuts(size: Size) -> Iterator[Cut]:
    groups, steps = ceil_div(size["c_out"], OUTS), ceil_div(size["c_in"], DEPTH)
    for wide in WIDE:
        blocks = _runs(size, wide) * size["batch"] * groups
        for ranks, parts in ((1, 1), (2, 1), (1, 2), (2, 2)):
            if ranks * parts > steps:
                continue
            slots = next((n for n in (3, 2) if _shared(size, Cut(wide, ranks, parts, n), 2) <= MOST_SHARED), 0)
            if not slots:
                continue
            step = max(wide, BYTE * _slot(size, wide, 2))
            waves = ceil_div(blocks * ranks * parts, RESIDENT)
            meeting = (MEETING if ranks > 1 else 0) + (ADDING if parts > 1 else 0)
            cost = waves * (ceil_div(steps, ranks * parts) * step + START) + meeting
            yield Cut(wide, ranks, parts, slots, cost)


def cut(size: Size) -> Cut:
    """The cut with the least work for the busiest SM."""
    return min(_cuts(size), key=lambda one: one.cost)


def _planes(size: Size, halves: int) -> int:
    """Planes of all images."""
    return size["batch"] * ceil_div(size["c_in"], DEPTH) * DEPTH // 8 * halves


def launches(halves: int) -> Callable[[Size], tuple[Launch, ...]]:
    """The two launches, for ``halves`` halves of each factor."""

    def of(size: Size) -> tuple[Launch, ...]:
        one = cut(size)
        length, runs = _length(size, one.wide), _runs(size, one.wide)
        extents = [np.int32(size[key]) for key in ("n", "c_in", "c_out", "batch")]
        plane_blocks = ceil_div(length, FIRST_THREADS) * _planes(size, 1)
        cleared = size["batch"] * size["c_out"] * size["n"] ** 2 if one.parts > 1 else 0
        first = Launch(
            f"convlayer_to_planes<{halves}, {FIRST_THREADS}>",
            (plane_blocks + ceil_div(cleared, FIRST_THREADS * CLEARED_EACH),),
            (FIRST_THREADS,),
            ("input", "planes", "output", *extents, np.int32(length), np.int32(plane_blocks)),
        )
        row = size["c_in"] * common.TAPS
        weights = Tensor("weights", (size["c_out"], row), (OUTS, PITCH), "float32", l2_promotion=256)
        second = Launch(
            f"convlayer_runs<{halves}, {one.wide}, {one.slots}, {one.ranks}>",
            (one.ranks * one.parts, runs * size["batch"], ceil_div(size["c_out"], OUTS)),
            (THREADS,),
            (weights, "planes", "output", *extents[:3], np.int32(runs), np.int32(length)),
            _shared(size, one, halves),
            pdl=True,
        )
        return (first, second)

    return of


def workspace(halves: int) -> Callable[[Size], Mapping[str, tuple[tuple[int, ...], str]]]:
    """Room for the halves of pixels."""
    return lambda size: {"planes": ((_planes(size, halves), _length(size, cut(size).wide), 8), "float16")}
