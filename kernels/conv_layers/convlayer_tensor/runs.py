"""The launches of the rung ``runs``: halves in padded planes, tiles that are runs of pixels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from climb.bench.problem import Launch, Size, ceil_div
from kernels.conv_layers.convlayer_tensor import launches as common
from kernels.conv_layers.convlayer_tensor.launches import DEPTH, EIGHT, FLOAT, OUTS, TAP_HALVES

#: Threads of the first launch and of the second, and floats that a thread of the first clears.
FIRST_THREADS, THREADS, CLEARED_EACH = 128, 384, 8
#: Warpgroups that multiply, and pixels of one.
GROUPS, WIDE = 2, (112, 104, 96)


@dataclass(frozen=True)
class Cut:
    """The rung's cut of a layer: runs of twice ``wide`` pixels; parts of the input maps for ``ranks`` times ``sums``."""

    wide: int
    ranks: int
    sums: int
    slots: int = 3
    cost: float = 0.0


def pitch(size: Size) -> int:
    return size["n"] + 1


def runs(size: Size, one: Cut) -> int:
    """Runs of an image."""
    return ceil_div(size["n"] * pitch(size) - 1, GROUPS * one.wide)


def length(size: Size, one: Cut) -> int:
    """Pieces of a plane: those of all runs, the last with what lies below and beside it."""
    return runs(size, one) * GROUPS * one.wide + 2 * pitch(size) + 2


def shared_bytes(size: Size, one: Cut, parts: int) -> int:
    run = GROUPS * one.wide + 2 * pitch(size) + 2
    slot = parts * (TAP_HALVES * 2 + DEPTH // 8 * run * EIGHT)
    given = one.wide * OUTS * FLOAT if one.ranks > 1 else 0
    return one.slots * slot + given


def steps_of(size: Size) -> int:
    return ceil_div(size["c_in"], DEPTH)


def launches_of(size: Size, parts: int, one: Cut) -> tuple[Launch, ...]:
    n, eights, groups = size["n"], steps_of(size) * DEPTH // 8, ceil_div(size["c_out"], OUTS)
    extents = [np.int32(size[key]) for key in ("n", "c_in", "c_out")]
    tap_blocks = ceil_div(groups * OUTS // 8 * eights, FIRST_THREADS // 32)
    pixel_blocks = ceil_div(length(size, one), FIRST_THREADS) * eights * size["batch"]
    cleared = size["batch"] * size["c_out"] * n**2 if one.sums > 1 else 0
    clear_blocks = ceil_div(cleared, FIRST_THREADS * CLEARED_EACH)
    sized = np.int32(length(size, one))
    first = Launch(
        f"convlayer_to_planes<{parts}, {FIRST_THREADS}, {1 if size['c_in'] % 4 else 4}>",
        (tap_blocks + pixel_blocks + clear_blocks,),
        (FIRST_THREADS,),
        ("input", "weights", "pixels", "taps", "output", *extents, np.int32(size["batch"]), sized,
         np.int32(tap_blocks), np.int32(pixel_blocks)),
    )  # fmt: skip
    second = Launch(
        f"convlayer_runs<{parts}, {one.wide}, {one.slots}, {one.ranks}>",
        (one.ranks * one.sums, runs(size, one) * size["batch"], groups),
        (THREADS,),
        ("taps", "pixels", "output", *extents, np.int32(runs(size, one)), sized),
        shared_bytes(size, one, parts),
        pdl=True,
    )
    return (first, second)


def workspace_of(size: Size, parts: int, one: Cut) -> Mapping[str, tuple[tuple[int, ...], str]]:
    planes = size["batch"] * steps_of(size) * DEPTH // 8 * parts
    return {
        "pixels": ((planes, length(size, one), 8), "float16"),
        "taps": ((ceil_div(size["c_out"], OUTS), steps_of(size), parts * TAP_HALVES), "float16"),
    }
