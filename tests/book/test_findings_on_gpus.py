"""Findings that were seen by measuring: what each says of a GPU's times or counters, asked of both GPUs of the book."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest

from climb.bench import records
from climb.bench.hardware import gpu_slug
from climb.bench.profiling import hardware_counters
from climb.bench.same_sms import SECOND_GPU
from climb.bench.timings import Timings, timings
from climb.display.where_it_holds import Finding, read_findings

#: Times of a ladder on one GPU, and in which state of the cache: cold, if not said otherwise.
Of = Callable[..., Timings]


def _order(of: Of, ladder: str, *names: str) -> bool:
    """Return whether each kernel is faster than the next, beyond the spread of its samples."""
    known = of(ladder)
    return all(known.compare(a, b) == "faster" for a, b in pairwise(names))


def _first_is_fastest_at(of: Of, k: int, a: str, b: str) -> bool:
    size = {"rows": 8192, "cols": 8192, "k": k, "k_cols": k, "border": "zero"}
    return of("conv2d").compare(a, b, size) == "faster"


def _best_factors_differ(of: Of) -> bool:
    """Return whether the best number of outputs per thread differs between kernels, and between sizes of one."""
    best: dict[str, dict[object, tuple[float, object]]] = {}
    for ladder in ("coarse_stencil", "coarse_matmul", "coarse_histogram"):
        for point in of(ladder).reference.points:
            if point.regime == "cold" and point.kind == "rung":
                size = dict(point.size)
                outputs = size.pop("outputs")
                of_kernel = best.setdefault(point.name, {})
                key = tuple(size.items())
                of_kernel[key] = min(of_kernel.get(key, (1e9, 0)), (point.median_s, outputs))
    chosen = [{outputs for _, outputs in of_kernel.values()} for of_kernel in best.values()]
    return len(set.union(*chosen)) > 1 and any(len(one) > 1 for one in chosen)


def _below_full_clock(of: Of) -> bool:
    point, highest = of("hgemm").point("small_tiles"), of("hgemm").reference.device["clocks"]["max_sm_mhz"]
    return point.sm_clock_mhz is not None and highest is not None and point.sm_clock_mhz < 0.98 * highest


def _tensor_cores_as_accurate(of: Of) -> bool:
    """Return whether three products in TF32 take less time for a batch than each kernel and library in float32."""
    known = of("classifier")
    size = known.ladder.problem.headline[-1]
    points = [p for p in known.points if p.regime == "cold" and p.size == size and "TF32" not in p.name]
    return size["batch"] > 1 and known.seconds("Triton 3xTF32", size) < min(p.median_s for p in points)


def _eviction_pays_in_a_dirty_cache_alone(of: Of) -> bool:
    """Return whether a dirty L2 costs a reader time, and the rung that evicts first gains nothing in a clean one."""
    size = {"n": 1 << 22}
    cost = of("read", "dirty").seconds("vectorised", size) / of("read").seconds("vectorised", size)
    return cost > 1.1 and abs(of("conv1d").ratio("evict_first", "smem_transposed") - 1) < 0.05


def _bank_takes_a_cycle(of: Of) -> bool:
    """Return whether warps whose FMAs read two operands from one bank take twice as long as warps whose FMAs do not."""
    return 1.9 < of("fma").seconds("many_warps") / of("fma").seconds("many_chains") < 2.1


def _transforms_pass_the_sum(of: Of) -> bool:
    known = of("fft_conv3d")
    return known.seconds("dependent") < known.limit_s() and known.compare("dependent", "cuFFT") == "faster"


def _errors_of_winograd(of: Of) -> bool:
    known = of("convlayer")
    return known.point("winograd_2d").max_rel_error <= known.point("direct").max_rel_error


def _waits_for_l1(of: Of) -> bool:
    """Return whether the naive product finds its sectors in L1, leaves DRAM idle, and is far faster with k = 4097."""
    counted = hardware_counters("matmul", gpu=gpu_slug(of("matmul").reference.gpu))
    even, odd = (counted.at("naive", {"m": 4096, "n": 4096, "k": k}) for k in (4096, 4097))
    in_l1 = even["load_sectors_hit_l1"] > 0.9 * even["load_sectors"] and even["dram_busy"] < 10
    return in_l1 and even["nanoseconds"] > 2.5 * odd["nanoseconds"]


def _dram_delivers_two_sectors(of: Of) -> bool:
    """Return whether SMs ask for one sector per float of a copy with stride 16, and DRAM delivers two."""
    n = 1 << 24
    counted = hardware_counters("strided", gpu=gpu_slug(of("strided").reference.gpu))
    seen = counted.at("strided", {"n": n, "stride": 16})
    return seen["l2_sectors_asked"] == n and abs(seen["dram_bytes_read"] / (64 * n) - 1) < 0.01


def _small_blocks_start_alike(of: Of) -> bool:
    """Return whether blocks of 32 threads start at the rate of blocks of 128."""
    known, size = of("occupancy"), of("occupancy").ladder.problem.headline[0] | {"shared": 0}
    pace = [1 / threads / known.seconds("one_float", size | {"threads": threads}) for threads in (32, 128)]
    return abs(pace[0] / pace[1] - 1) < 0.05


#: What a finding says of times or counters, by the finding; those that rest on the H200's counters alone, or on machine
#: code, are not here.
SHOWN: dict[str, Callable[[Of], bool]] = {
    "With one 4-byte load in flight per thread, a full GPU does not reach its copy rate.":
        lambda of: of("copy").of_limit("scalar") < 0.95 < of("copy").of_limit("vectorised"),
    "In a stencil of small radius the L1 cache is the tile already, and one in shared memory is slower.":
        lambda of: _order(of, "stencil1d", "naive", "tiled") and _order(of, "stencil2d", "naive", "tiled"),
    "The naive product waits for its L1 cache, not for memory: tags first, then banks.": _waits_for_l1,
    "DRAM is read in pieces of 64 bytes where SMs ask for 32.": _dram_delivers_two_sectors,
    "Small blocks start at a fixed rate, whatever their size.": _small_blocks_start_alike,
    "The best factor belongs to a kernel and a size.": _best_factors_differ,
    "Loads that are evicted first spare a dirty L2 its writing back, and gain nothing in a clean one.":
        _eviction_pays_in_a_dirty_cache_alone,
    "Reuse that L1 serves already is not worth a tile.": lambda of: _order(of, "conv2d", "constant", "tiled"),
    "A shuffle is no cheaper than a load from shared memory without conflicts.":
        lambda of: _order(of, "conv2d", "tiled", "shuffle"),
    "As a cache for single floats, the texture units are slower than L1.":
        lambda of: _order(of, "conv2d", "constant", "texture"),
    "Small filters want tiles of outputs in registers, large ones a stream of rows.":
        lambda of: _first_is_fastest_at(of, 3, "register_tile", "streamed")
        and _first_is_fastest_at(of, 11, "streamed", "register_tile"),
    "Once loads are rare, hiding the wait for the next plane gains more than fewer loads do.":
        lambda of: of("conv3d").ratio("pipelined", "streamed") > of("conv3d").ratio("streamed", "register_row") > 1,
    "Additions to memory can be cheaper than a load for each product.":
        lambda of: _order(of, "convlayer", "map_atomics", "output_stationary"),
    "Winograd's 2 x 2 tiles take four ninths of the products, with errors no larger than those of the direct sum.":
        _errors_of_winograd,
    "Warps that only copy beside warps that only multiply are faster than warps that do both.":
        lambda of: _order(of, "hgemm", "specialised", "wgmma"),
    "With random data the tensor cores run below the highest clock.": _below_full_clock,
    "Two operands from one register bank cost an FMA a cycle.": _bank_takes_a_cycle,
    "An FMA that needs two registers from one bank takes a second cycle.": _bank_takes_a_cycle,
    "As many copies as leave room for two blocks on an SM are the best.":
        lambda of: of("histogram_bins").best({"n": 1 << 29, "bins": 1024}) in ("copies_8", "copies_16"),
    "A sparse product of 64 x 256 x 32 takes the time that shared memory needs for its factors, not that of its "
    "arithmetic.": lambda of: _order(of, "sparse_pipe", "registers", "shared"),
    "A step that waits for the whole GPU costs least as a dependent launch, more by a value or a barrier in L2, and "
    "most as a launch of its own.": lambda of: _order(of, "chain", "dependent", "handed_over", "barrier", "stream"),
    "A persistent kernel that streams weights is faster than a graph of fused kernels, with one sample.":
        lambda of: _order(of, "unet", "output_stationary", "graph"),
    "Transforms of tiles that stay in an SM pass the limit of the sum, and cuFFT, from a few weights in a row on.":
        _transforms_pass_the_sum,
    "For a batch, tensor cores win even at the accuracy of float32.": _tensor_cores_as_accurate,
    "Reading alone is faster than copying.":
        lambda of: of("copy").ceilings["read_gb_s"] > of("copy").ceilings["copy_gb_s"],
    "Blocks that stay and stride through an array copy it more slowly than fresh blocks.":
        lambda of: _order(of, "async_copy", "vectorised", "pipelined") and _order(of, "async_copy", "bulk", "cp_async"),
    "A product on the FMA pipe gains where a copy engine saves its threads instructions and registers.":
        lambda of: _order(of, "async_matmul", "setmaxnreg", "tma", "double_buffered"),
}  # fmt: skip

SEEN = [finding for several in read_findings().values() for finding in several if finding.holds == "seen"]


@pytest.mark.parametrize("finding", [f for f in SEEN if f.finding in SHOWN], ids=lambda f: f.finding[:40])
def test_finding_names_the_gpus_whose_records_show_it(finding: Finding) -> None:
    gpus = (records.BOOK_GPU, SECOND_GPU)
    showing = {gpu for gpu in gpus if SHOWN[finding.finding](partial(timings, gpu=gpu))}
    assert {gpu_slug(gpu) for gpu in finding.seen_on} == showing


def test_finding_that_names_a_second_gpu_rests_on_its_records() -> None:
    """A GPU without its own times or counters of a finding shows nothing of it."""
    second = {f.finding for f in SEEN if {gpu_slug(gpu) for gpu in f.seen_on} - {records.BOOK_GPU}}
    assert second <= set(SHOWN) <= {f.finding for f in SEEN}
