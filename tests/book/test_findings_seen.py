"""Findings that rest on times hold on exactly those GPUs that `findings.toml` names, by the records of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from climb import Timings, timings
from climb.bench import records
from climb.bench.hardware import gpu_slug
from climb.bench.same_sms import SECOND_GPU
from climb.display.where_it_holds import read_findings

Read = Callable[..., Timings]


def _filter(read: Read, taps: int) -> dict[str, float]:
    """Times of all rungs of conv2d at 8192 x 8192 with a filter of taps x taps."""
    times = read("conv2d")
    (size,) = [s for s in times.ladder.problem.headline if s["k"] == taps]
    return {name: times.seconds(name, size) for name in times.measured}


def _bank_takes_a_cycle(read: Read) -> bool:
    return 1.9 < read("fma").seconds("many_warps") / read("fma").seconds("many_chains") < 2.1


def _tile_is_slower(read: Read) -> bool:
    times = read("stencil2d")
    return all(times.seconds("naive", s) < times.seconds("tiled", s) for s in times.ladder.problem.recorded[:3])


def _eviction_helps_dirty_caches_only(read: Read) -> bool:
    size = {"n": 1 << 22}
    dirty = read("read", "dirty").seconds("vectorised", size) / read("read").seconds("vectorised", size)
    return dirty > 1.1 and abs(read("conv1d").ratio("evict_first", "smem_transposed") - 1) < 0.05


def _small_filters_want_tiles(read: Read) -> bool:
    small, large = _filter(read, 3), _filter(read, 11)
    streams = ("streamed", "prefetched")
    return small["register_tile"] < min(small[s] for s in streams) and large["register_tile"] > max(
        large[s] for s in streams
    )


def _waiting_costs_more_than_loads(read: Read) -> bool:
    row, streamed, pipelined = map(read("conv3d").seconds, ("register_row", "streamed", "pipelined"))
    return streamed - pipelined > 2 * (row - streamed) > 0


def _winograd_is_as_exact(read: Read) -> bool:
    times = read("convlayer")
    layers = times.ladder.problem.headline[:2]
    return all(times.point("winograd_2d", s).max_rel_error <= times.point("direct", s).max_rel_error for s in layers)


def _transforms_pass_the_sum(read: Read) -> bool:
    times = read("fft_conv3d")
    wide = [s for s in times.ladder.problem.recorded if s["k"] >= 7]
    return all(
        times.of_limit("dependent", s) > 1 and times.seconds("dependent", s) < times.seconds("cuFFT", s) for s in wide
    )


SEEN: dict[str, Callable[[Read], bool]] = {
    "Two operands from one register bank cost an FMA a cycle.": _bank_takes_a_cycle,
    "An FMA that needs two registers from one bank takes a second cycle.": _bank_takes_a_cycle,
    "In a stencil of small radius the L1 cache is the tile already, and one in shared memory is slower.": (
        _tile_is_slower
    ),
    "Loads that are evicted first spare a dirty L2 its writing back, and gain nothing in a clean one.": (
        _eviction_helps_dirty_caches_only
    ),
    "Reuse that L1 serves already is not worth a tile.": (
        lambda read: all(_filter(read, taps)["constant"] < _filter(read, taps)["tiled"] for taps in (3, 5))
    ),
    "A shuffle is no cheaper than a load from shared memory without conflicts.": (
        lambda read: all(_filter(read, taps)["tiled"] < _filter(read, taps)["shuffle"] for taps in (3, 5, 11))
    ),
    "As a cache for single floats, the texture units are slower than L1.": (
        lambda read: all(_filter(read, taps)["constant"] < _filter(read, taps)["texture"] for taps in (3, 5, 11))
    ),
    "Small filters want tiles of outputs in registers, large ones a stream of rows.": _small_filters_want_tiles,
    "Once loads are rare, hiding the wait for the next plane gains more than fewer loads do.": (
        _waiting_costs_more_than_loads
    ),
    "Additions to memory can be cheaper than a load for each product.": (
        lambda read: read("convlayer").seconds("map_atomics") < read("convlayer").seconds("output_stationary")
    ),
    "Winograd's 2 x 2 tiles take four ninths of the products, with errors no larger than those of the direct sum.": (
        _winograd_is_as_exact
    ),
    "A persistent kernel that streams weights is faster than a graph of fused kernels, with one sample.": (
        lambda read: max(map(read("unet").seconds, ("streamed", "in_registers"))) < read("unet").seconds("graph")
    ),
    "Transforms of tiles that stay in an SM pass the limit of the sum, and cuFFT, from a few weights in a row on.": (
        _transforms_pass_the_sum
    ),
    "As many copies as leave room for two blocks on an SM are the best.": (
        lambda read: read("histogram_bins").best({"n": 1 << 29, "bins": 1024}) in ("copies_8", "copies_16")
    ),
    "A sparse product of 64 x 256 x 32 takes the time that shared memory needs for its factors, not that of its "
    "arithmetic.": lambda read: read("sparse_pipe").ratio("registers", "shared") > 1.1,
}


@pytest.mark.parametrize("finding", SEEN)
def test_the_finding_names_the_gpus_whose_times_show_it(finding: str) -> None:
    (row,) = [row for rows in read_findings().values() for row in rows if row.finding == finding]
    holding = {gpu for gpu in (records.BOOK_GPU, SECOND_GPU) if SEEN[finding](partial(timings, gpu=gpu))}
    assert holding == {gpu_slug(gpu) for gpu in row.seen_on}
