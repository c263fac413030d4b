"""One-dimensional convolution, a layer of a network at batch 1: many channels and short rows, so the bytes are weights.

``output[o, p] = bias[o] + sum over c, t of weight[o, c, t] * input[c, p + t - k // 2]``, with zeros outside the rows.
A rung may leave out the products with those zeros, so that a weight that is NaN or infinite and meets only them changes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from climb.bench.ladder import Ladder
from climb.bench.problem import Launch, Rung, Size
from kernels.conv1d.conv1d.launches import (
    channels,
    naive,
    registers,
    requires,
    shuffles,
    staged,
    transposed,
    wide_filters,
)
from kernels.conv1d.conv1d.peers import PEERS
from kernels.conv1d.conv1d.problem import DOUBLE, MAX_TAPS, UNET, UNET_COUNTS, layer, problem
from kernels.conv1d.conv1d.tuned import chosen

__all__ = ["DOUBLE", "MAX_TAPS", "UNET", "UNET_COUNTS", "ladder", "layer", "problem"]

ROWS_ALIGNED = {"input": 16}
ALL_ALIGNED = {"input": 16, "weight": 16}


def _rung(
    name: str, idea: str, launches: Callable[[Size], tuple[Launch, ...]], alignment: Mapping[str, int] | None = None
) -> Rung:
    """A rung; the last one alone is recorded at the sizes of the sweep."""
    return Rung(name, idea, launches, alignment=alignment or {}, requires=requires, swept=name == "skip_halo_taps")


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        _rung("naive", "a thread a channel, a tree a block", naive),
        _rung("coalesced", "rows and filters through shared memory", staged("conv1d_coalesced", False, False)),
        _rung("vectorised", "four floats of the rows per load", staged("conv1d_vectorised", True, False), ROWS_ALIGNED),
        _rung("padded", "one unused float after every 32", staged("conv1d_padded", True, True), ROWS_ALIGNED),
        _rung("shuffle", "sums by shuffles and atomics", shuffles, ROWS_ALIGNED),
        _rung("channels", "several channels a thread", channels, ROWS_ALIGNED),
        _rung(
            "wide_weights",
            "four floats of the filters per load",
            wide_filters("conv1d_wide_weights", False),
            ALL_ALIGNED,
        ),
        _rung(
            "separate_buffers",
            "a shared buffer each for rows and filters",
            wide_filters("conv1d_separate_buffers", True),
            ALL_ALIGNED,
        ),
        _rung("registers", "rows and filters straight to registers", registers, ALL_ALIGNED),
        _rung(
            "smem_transposed",
            "coalesced filters, transposed by each warp",
            transposed("conv1d_smem_transposed"),
            ALL_ALIGNED,
        ),
        _rung("evict_first", "filters leave the caches first", transposed("conv1d_evict_first"), ALL_ALIGNED),
        _rung("hoisted_bias", "the bias is loaded first", transposed("conv1d_hoisted_bias"), ALL_ALIGNED),
        _rung("tuned", "a block tuned for each layer", chosen("tuned"), ALL_ALIGNED),
        _rung("cp_async", "filters by asynchronous copies", chosen("cp_async"), ALL_ALIGNED),
        _rung(
            "consume_as_arrive", "each filter is used as soon as it arrives", chosen("consume_as_arrive"), ALL_ALIGNED
        ),
        _rung("skip_halo_taps", "no products with zeros beyond the row", chosen("skip_halo_taps"), ALL_ALIGNED),
    ),
    peers=PEERS,
)
