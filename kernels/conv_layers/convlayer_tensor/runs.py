"""The launches of the rung ``runs``: tiles are runs of pixels, of a length that fits the number of SMs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from climb.bench.problem import Launch, Size, Tensor, ceil_div
from kernels.conv_layers.convlayer_tensor import launches as common
from kernels.conv_layers.convlayer_tensor.launches import DEPTH, EIGHT, FLOAT, OUTS, PITCH

#: The kernel's kThreads, threads that make halves, kEach, kGroups, kRawSlots, and pixels of a warpgroup.
THREADS, SPLITTERS, EACH, GROUPS, RAW_SLOTS, WIDE = 384, 96, 5, 2, 2, (112, 104, 96)
#: Threads of the last pass, and the most shared memory of a block.
ADD_THREADS, MOST_SHARED = 128, 227 * 1024
#: What it costs to start and end a block, to add up the sums of a cluster, and to launch a last pass and read each
#: part there, in pixels of a warpgroup times steps.
START, MEETING, LAST_PASS, LAST_PART = 100, 60, 150, 12


@dataclass(frozen=True)
class Cut:
    """The rung's cut of a layer.

    Runs of twice ``wide`` pixels. The input maps are split over the ``ranks`` of a cluster, and over ``parts`` clusters,
    whose sums a last pass adds up. ``slots`` is the kernel's kSlots.
    """

    wide: int
    ranks: int
    parts: int
    slots: int
    #: Work of the busiest SM: pixels of a warpgroup times steps.
    cost: float = 0.0


def _pieces(size: Size, wide: int) -> int:
    """Pieces of a run, with those of the taps around it."""
    return GROUPS * wide + 2 * (size["n"] + 1) + 2


def _runs(size: Size, wide: int) -> int:
    """Runs of an image."""
    return ceil_div(size["n"] * (size["n"] + 1) - 1, GROUPS * wide)


def _shared(size: Size, wide: int, slots: int, halves: int) -> int:
    """Bytes of shared memory, for ``halves`` halves of each factor."""
    pieces = _pieces(size, wide)
    slot = OUTS * PITCH * FLOAT + halves * DEPTH // 8 * pieces * EIGHT
    return slots * slot + RAW_SLOTS * DEPTH * ((pieces + 11) // 4 * 4) * FLOAT


def _slots(size: Size, wide: int) -> int:
    """Steps that shared memory has room for: three at most, none where two have none."""
    return next((slots for slots in (3, 2) if _shared(size, wide, slots, 2) <= MOST_SHARED), 0)


def fits(size: Size) -> str | None:
    """Return why the rung refuses a size, or None."""
    if size["n"] % 2:
        return "n must be even, because a map is a multiple of 16 bytes"
    if reason := common.tensor_maps_fit({**size, "n": 4}):
        return reason
    if not _wide(size):
        return "n is too large: what a run needs above and below has no room in shared memory"
    if max(_runs(size, wide) for wide in WIDE) * size["batch"] > common.MAX_MAPS:
        return f"runs of all images may be at most {common.MAX_MAPS}, the most blocks in y"
    return None


def _wide(size: Size) -> list[int]:
    """Widths whose runs have room."""
    return [wide for wide in WIDE if _pieces(size, wide) <= EACH * SPLITTERS and _slots(size, wide)]


def _cuts(size: Size) -> Iterator[Cut]:
    groups, steps = ceil_div(size["c_out"], OUTS), ceil_div(size["c_in"], DEPTH)
    for wide in _wide(size):
        for ranks in (1, 2):
            for parts in (1, 2, 4, 8, 16):
                if ranks * parts > steps:
                    continue
                blocks = _runs(size, wide) * size["batch"] * groups * ranks * parts
                waves = ceil_div(blocks, common.BLOCKS[ranks])
                cost = waves * (ceil_div(steps, ranks * parts) * wide + START + (MEETING if ranks > 1 else 0))
                last_pass = LAST_PASS + LAST_PART * parts if parts > 1 else 0
                yield Cut(wide, ranks, parts, _slots(size, wide), cost + last_pass)


def cut(size: Size) -> Cut:
    """The cut with the least work for the busiest SM."""
    return min(_cuts(size), key=lambda one: one.cost)


def launches(halves: int) -> Callable[[Size], tuple[Launch, ...]]:
    """The launch, for ``halves`` halves of each factor, and perhaps a last pass."""

    def of(size: Size) -> tuple[Launch, ...]:
        one = cut(size)
        weights = Tensor(
            "weights", (size["c_out"], size["c_in"] * common.TAPS), (OUTS, PITCH), "float32", l2_promotion=256
        )
        extents = [np.int32(size[key]) for key in ("n", "c_in", "c_out", "batch")]
        runs = _runs(size, one.wide)
        to = "sums" if one.parts > 1 else "output"
        first = Launch(
            f"convlayer_runs<{halves}, {one.wide}, {one.slots}, {one.ranks}>",
            (one.ranks * one.parts, runs * size["batch"], ceil_div(size["c_out"], OUTS)),
            (THREADS,),
            (weights, "input", to, *extents, np.int32(runs)),
            _shared(size, one.wide, one.slots, halves),
        )
        if one.parts == 1:
            return (first,)
        quads = size["batch"] * size["c_out"] * size["n"] ** 2 // 4
        last = Launch(
            f"convlayer_add_runs<{ADD_THREADS}, {one.parts}>",
            (ceil_div(quads, ADD_THREADS),),
            (ADD_THREADS,),
            ("sums", "output", np.uint64(quads)),
            pdl=True,
        )
        return (first, last)

    return of


def workspace(size: Size) -> Mapping[str, tuple[tuple[int, ...], str]]:
    """Room for the output of each part of the input maps."""
    parts = cut(size).parts
    return {"sums": ((parts, size["batch"], size["c_out"], size["n"], size["n"]), "float32")} if parts > 1 else {}
