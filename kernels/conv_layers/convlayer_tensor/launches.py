"""The launches of the convolution layer on tensor cores: tiles of pixels, groups of output maps, parts of inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from climb.bench.problem import Launch, Size, Tensor, ceil_div
from kernels.conv_layers.convlayer.layer import MAX_MAPS, MAX_N

#: Blocks that an H200 runs at a time, by the size of their clusters. Of clusters of four, 32 took two waves.
RESIDENT = {1: 132, 2: 132, 4: 120}
#: Both rungs: output maps of a block, and input maps of a step.
OUTS, DEPTH, TAPS = 64, 16, 9
#: ``mma``: the side of a tile, and threads.
SIDE, MMA_THREADS = 8, 128
#: ``wgmma``: the kernel's kWide, kWeightPitch, its slots of the ring, and threads.
WIDE, PITCH, TAP_SLOTS, PIXEL_SLOTS, RAW_SLOTS, THREADS = 8, DEPTH * TAPS + 4, 4, 3, 2, 384
#: ``wgmma``: the kernel's kRawPitch and kWholePixels.
RAW_PITCH, WHOLE = 16, 256
FLOAT, EIGHT = 4, 16
#: What it costs to start a block and to add up the sums of a cluster, in steps, and what a step of a tile alone costs
#: beside one of two tiles, which share the weights.
START, MEETING, ALONE = 0.5, 1.0, 1.2


def requires(size: Size) -> str | None:
    """Return why both rungs refuse a size, or None."""
    if size["k"] != 3:
        return "k must be 3, because the nine taps are unrolled"
    if size["n"] > MAX_N:
        return f"n may be at most {MAX_N}, because pixels are counted in 32 bits"
    if max(size["batch"], size["c_in"], size["c_out"]) > MAX_MAPS:
        return f"batch, c_in and c_out may be at most {MAX_MAPS}, the most blocks in y and z"
    return None


def tensor_maps_fit(size: Size) -> str | None:
    """Return why the rung with tensor maps refuses a size, or None."""
    if not all(size[key] for key in ("n", "c_in", "c_out", "batch")):
        return "no extent may be zero, because a tensor map has at least one element"
    if size["c_in"] % 4:
        return "c_in must be a multiple of 4, because a row of weights is a multiple of 16 bytes"
    if size["n"] % 4 and not takes_whole_maps(size):
        return "n must be a multiple of 4, or even and at most 16, because rows or maps are multiples of 16 bytes"
    return requires(size)


def takes_whole_maps(size: Size) -> bool:
    """Return whether a copy has whole maps instead of boxes of them."""
    return size["n"] % 2 == 0 and size["n"] ** 2 <= WHOLE


def mma(parts: int) -> Callable[[Size], tuple[Launch, ...]]:
    """A block for 8 x 8 pixels and 64 output maps; ``parts`` of each factor."""

    def launches(size: Size) -> tuple[Launch, ...]:
        grid = (max(1, ceil_div(size["n"], SIDE) ** 2), max(1, ceil_div(size["c_out"], OUTS)), max(1, size["batch"]))
        extents = (np.int32(size[key]) for key in ("n", "c_in", "c_out"))
        return (Launch(f"convlayer_mma<{parts}>", grid, (MMA_THREADS,), ("input", "weights", "output", *extents)),)

    return launches


@dataclass(frozen=True)
class Plan:
    """The cut of a layer by the rungs of warpgroups.

    A warpgroup has tiles of 8 x ``high`` pixels; the input maps are split over the ``ranks`` of a cluster. ``across``
    blocks share the tiles. The two warpgroups of a block take a tile each, and a last one together, step by step.
    """

    high: int
    ranks: int
    across: int
    #: Work of the busiest SM: rows of pixels times steps.
    cost: float


def _plan(size: Size, high: int, ranks: int, across: int) -> Plan:
    own = ceil_div(_tiles(size, high), across)
    steps = ceil_div(ceil_div(size["c_in"], DEPTH), ranks) * (own // 2 * 2 + own % 2 * ALONE)
    waves = ceil_div(across * ceil_div(size["c_out"], OUTS) * ranks, RESIDENT[ranks])
    return Plan(high, ranks, across, waves * high * (steps + START + (MEETING if ranks > 1 else 0.0)))


def _tiles(size: Size, high: int) -> int:
    return max(1, ceil_div(size["n"], WIDE) * ceil_div(size["n"], high) * size["batch"])


def _plans(size: Size) -> Iterator[Plan]:
    for high in (16, 14):
        tiles = _tiles(size, high)
        pairs = ceil_div(tiles, 2)
        for ranks in RESIDENT:
            # Two tiles a block, or one.
            yield from (_plan(size, high, ranks, across) for across in (pairs, tiles))
        # Blocks that go from tile to tile.
        if (across := max(1, RESIDENT[1] // ceil_div(size["c_out"], OUTS))) < pairs:
            yield _plan(size, high, 1, across)


def plan(size: Size) -> Plan:
    """The cut with the least work for the busiest SM."""
    return min(_plans(size), key=lambda one: one.cost)


def _ring_bytes(high: int, parts: int, whole: bool) -> int:
    """The kernel's ``sizeof(Ring)``."""
    halves = PIXEL_SLOTS * parts * DEPTH // 8 * (high + 2) * (WIDE + 2) * EIGHT
    raw = RAW_SLOTS * DEPTH * (WHOLE if whole else (high + 2) * RAW_PITCH) * FLOAT
    return ceil_div(TAP_SLOTS * OUTS * PITCH * FLOAT + halves + raw, 128) * 128


def wgmma(parts: int) -> Callable[[Size], tuple[Launch, ...]]:
    """Clusters for tiles of pixels and groups of 64 output maps."""

    def launches(size: Size) -> tuple[Launch, ...]:
        cut = plan(size)
        row = size["c_in"] * TAPS
        weights = Tensor("weights", (size["c_out"], row), (OUTS, PITCH), "float32", l2_promotion=256)
        n, maps, whole = size["n"], size["batch"] * size["c_in"], takes_whole_maps(size)
        if whole:
            pixels = Tensor("input", (maps, n * n), (DEPTH, n * n), "float32", l2_promotion=256)
        else:
            box = (DEPTH, cut.high + 2, RAW_PITCH)
            pixels = Tensor("input", (maps, n, n), box, "float32", l2_promotion=256)
        kind = f"{cut.high}, {cut.ranks}, {str(whole).lower()}"
        grid = (cut.ranks, cut.across, ceil_div(size["c_out"], OUTS))
        extents = (np.int32(size[key]) for key in ("n", "c_in", "c_out", "batch"))
        shared = _ring_bytes(cut.high, parts, whole)
        taken = (weights, pixels, "output", *extents)
        return (Launch(f"convlayer_wgmma<{parts}, {kind}>", grid, (THREADS,), taken, shared),)

    return launches


#: ``halves``: threads of a block of the first launch, the second kernel's kPixelSlots, kGroups and kThreads.
HALVES_THREADS, FLOAT_SLOTS, GROUPS, OF_HALVES_THREADS = 128, 3, 2, 384
#: Halves of the weights of a block's output maps and of a step, of each part.
TAP_HALVES = OUTS * DEPTH * TAPS
#: Blocks of this rung that an H200 runs at a time, by the size of their clusters.
BLOCKS = {1: 132, 2: 132, 3: 117, 4: 120, 6: 102, 8: 120}
#: Threads of the last pass.
ADD_THREADS = 128
#: What it costs to add up the sums of a cluster, for each tile, and each rank; to launch a last pass, each part there
#: and each sum; and what a step of a tile alone costs beside one of two tiles, if not all weights stay. In rows of
#: eight pixels times steps, 0.06 us each: fitted to times of nine layers, cut in 25 ways.
CLUSTER_MEETING, CLUSTER_RANK, LAST_PASS, LAST_PART, LAST_SUM, ALONE_STEP = 24, 1, 30, 3, 3.2e-5, 1.1


def extents_fit(size: Size) -> str | None:
    """Return why ``halves`` refuses a size, or None."""
    if not all(size[key] for key in ("n", "c_in", "c_out", "batch")):
        return "no extent may be zero, because a block has at least one step"
    return requires(size)


def rows_of_weights_fit(size: Size) -> str | None:
    """Return why ``runs`` and ``shares``, which copy boxes of weights, refuse a size whatever its cut, or None."""
    if reason := extents_fit(size):
        return reason
    if size["c_in"] % 4:
        return "c_in must be a multiple of 4, because a row of weights is a multiple of 16 bytes"
    return None


@dataclass(frozen=True)
class Cut:
    """The cut of a layer by ``halves``.

    A warpgroup has tiles of 8 x ``high`` pixels, which ``across`` blocks share. The input maps are split over the
    ``ranks`` of a cluster, or into ``parts``, which a last pass adds up.
    """

    high: int
    parts: int
    ranks: int
    across: int
    #: Work of the busiest SM: rows of pixels times steps.
    cost: float


def _cut(size: Size, high: int, parts: int, ranks: int) -> Cut | None:
    groups, tiles = ceil_div(size["c_out"], OUTS), _tiles(size, high)
    own = ceil_div(tiles, max(1, BLOCKS[ranks] // (groups * parts * ranks)))
    if ranks > 1 and own > GROUPS:
        return None  # the sums of a cluster are those of its last tiles
    steps = ceil_div(ceil_div(size["c_in"], DEPTH), parts * ranks)
    across = ceil_div(tiles, own)
    # Two warpgroups share a last tile by its steps, if the weights of all steps stay.
    last = ceil_div(steps, GROUPS) * GROUPS if steps <= TAP_SLOTS else steps * ALONE_STEP
    rows = high * (own // GROUPS * GROUPS * steps + own % GROUPS * last)
    waves = ceil_div(groups * parts * ranks * across, BLOCKS[ranks])
    meeting = CLUSTER_MEETING * own + CLUSTER_RANK * ranks if ranks > 1 else 0
    sums = parts * size["batch"] * size["c_out"] * size["n"] ** 2
    last_pass = LAST_PASS + LAST_PART * parts + LAST_SUM * sums if parts > 1 else 0
    return Cut(high, parts, ranks, across, waves * rows + meeting + last_pass)


def cut(size: Size) -> Cut:
    """The cut with the least work for the busiest SM."""
    steps = ceil_div(size["c_in"], DEPTH)
    split = [(parts, 1) for parts in (1, 2, 4, 8, 16)] + [(1, ranks) for ranks in BLOCKS if ranks > 1]
    found = (_cut(size, high, *one) for one in split if max(one) <= steps for high in (16, 14))
    return min((one for one in found if one is not None), key=lambda one: one.cost)


def _eights(size: Size) -> int:
    """Eights of input maps, two for each step."""
    return ceil_div(size["c_in"], DEPTH) * DEPTH // 8


def _groups(size: Size) -> int:
    return ceil_div(size["c_out"], OUTS)


def halves(parts: int) -> Callable[[Size], tuple[Launch, ...]]:
    """A launch that makes halves, one that multiplies them, and perhaps a last pass.

    In the second launch, a block has tiles of pixels, 64 output maps and a part of the input maps.
    """

    def launches(size: Size) -> tuple[Launch, ...]:
        one, n, eights = cut(size), size["n"], _eights(size)
        extents = [np.int32(size[key]) for key in ("n", "c_in", "c_out", "batch")]
        tap_blocks = ceil_div(_groups(size) * OUTS // 8 * eights, HALVES_THREADS // 32)
        pixel_blocks = ceil_div(n * n, HALVES_THREADS) * eights * size["batch"]
        first = Launch(
            f"convlayer_to_halves<{parts}, {HALVES_THREADS}, {1 if size['c_in'] % 4 else 4}>",
            (tap_blocks + pixel_blocks,),
            (HALVES_THREADS,),
            ("input", "weights", "pixels", "taps", *extents[:3], np.int32(tap_blocks)),
        )
        box = (DEPTH // 8 * parts, one.high + 2, 8 * (WIDE + 2))
        planes = Tensor("pixels", (_planes(size, parts), n, 8 * n), box, "float16", l2_promotion=256)
        pixels = FLOAT_SLOTS * GROUPS * parts * DEPTH // 8 * (one.high + 2) * (WIDE + 2) * EIGHT
        shared = ceil_div(TAP_SLOTS * parts * TAP_HALVES * 2 + pixels, 128) * 128
        to = "sums" if one.parts > 1 else "output"
        grid = (one.parts * one.ranks, one.across, _groups(size))
        name = f"convlayer_of_halves<{parts}, {one.high}, {1 if n % 2 else 2}, {one.ranks}>"
        second = Launch(name, grid, (OF_HALVES_THREADS,), ("taps", planes, to, *extents), shared, pdl=True)
        if one.parts == 1:
            return (first, second)
        count = size["batch"] * size["c_out"] * n**2
        width = 1 if count % 4 else 4
        blocks = ceil_div(count, ADD_THREADS * width)
        last_args = ("sums", "output", np.uint64(count), np.int32(one.parts))
        last = Launch(f"convlayer_add_late<{ADD_THREADS}, {width}>", (blocks,), (ADD_THREADS,), last_args, pdl=True)
        return (first, second, last)

    return launches


def _planes(size: Size, parts: int) -> int:
    """Planes of eight halves for each pixel: for both halves of each step's input maps, each part, each image."""
    return size["batch"] * _eights(size) * parts


def halves_workspace(parts: int) -> Callable[[Size], Mapping[str, tuple[tuple[int, ...], str]]]:
    """Room for the halves, and for the output of each part of the input maps."""

    def workspace(size: Size) -> Mapping[str, tuple[tuple[int, ...], str]]:
        n, steps = size["n"], _eights(size) // (DEPTH // 8)
        scratch = {
            "pixels": ((_planes(size, parts), n, 8 * n), "float16"),
            "taps": ((_groups(size), steps, parts * TAP_HALVES), "float16"),
        }
        if (number := cut(size).parts) > 1:
            scratch["sums"] = ((number, size["batch"], size["c_out"], n, n), "float32")
        return scratch

    return workspace
