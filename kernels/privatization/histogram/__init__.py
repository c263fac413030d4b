"""Histogram: how often each byte occurs. Every value is read once; all threads contend for the counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.libraries import cub, triton_peers
from climb.bench.problem import Argument, Launch, Peer, Problem, Rung, Size, ceil_div

COUNT = 4
#: Threads of a block: in the first rung, and in the others.
SMALL_BLOCK, THREADS = 256, 1024
#: As many blocks as the H200's 132 SMs hold at once, two each. Another GPU may need another number.
RESIDENT_BLOCKS = 2 * 132
#: Values that one vector load brings, and values per block for which its copy pays: four loads per thread.
QUAD, CHUNK = 16, 4 * 16 * THREADS
#: Values made or counted at a time on the host: NumPy turns bytes into 8-byte integers to count them.
PIECE = 1 << 24
MAX_BINS = 256
#: Distributions of the values. In Zipf's, the k-th most frequent value is 1/k times as frequent as the first.
KINDS = ("uniform", "constant", "zipf")


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"values": _MAKERS[size["data"]](size["n"], size["bins"], rng)}


def _uniform(n: int, bins: int, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, bins, n, dtype=np.uint8)


def _constant(n: int, bins: int, rng: np.random.Generator) -> np.ndarray:
    return np.full(n, bins // 2, dtype=np.uint8)


def _zipf(n: int, bins: int, rng: np.random.Generator) -> np.ndarray:
    """Values drawn from a table of 2^16 entries, in which each value has entries in proportion to its probability."""
    shares = np.cumsum(1.0 / np.arange(1, bins + 1))
    table = np.searchsorted(shares / shares[-1], (np.arange(1 << 16) + 0.5) / (1 << 16)).astype(np.uint8)
    values = np.empty(n, dtype=np.uint8)
    for start in range(0, n, PIECE):
        piece = values[start : start + PIECE]
        piece[:] = table[rng.integers(0, 1 << 16, piece.size, dtype=np.uint16)]
    return values


_MAKERS: dict[str, Callable[[int, int, np.random.Generator], np.ndarray]] = dict(
    zip(KINDS, (_uniform, _constant, _zipf), strict=True)
)


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    counts = np.zeros(MAX_BINS, dtype=np.int64)
    for start in range(0, size["n"], PIECE):
        counts += np.bincount(inputs["values"][start : start + PIECE], minlength=MAX_BINS)
    return {"counts": counts[: size["bins"]].astype(np.uint32)}


def _sizes(n: int, bins: int, kinds: tuple[str, ...] = KINDS) -> tuple[Size, ...]:
    return tuple({"n": n, "bins": bins, "data": kind} for kind in kinds)


problem = Problem(
    name="histogram",
    title="Histogram of n bytes",
    size_keys=("n", "bins", "data"),
    arguments=(
        Argument("values", "uint8", ("n",)),
        Argument("counts", "uint32", ("bins",), role="output"),
    ),
    make_inputs=_inputs,
    reference=_reference,
    tolerance=lambda size: 0.0,  # whole numbers
    flops=lambda size: 0,
    bytes=lambda size: size["n"] + COUNT * size["bins"],
    headline=_sizes(1 << 30, MAX_BINS),
    # From a size that costs no more than a launch to one that exceeds the L2 cache.
    sweep=tuple({"n": 1 << power, "bins": MAX_BINS, "data": "uniform"} for power in (14, 18, 22, 26)),
    check=(
        {"n": 0, "bins": 256, "data": "uniform"},
        {"n": 1, "bins": 1, "data": "constant"},
        {"n": 15, "bins": 2, "data": "uniform"},
        {"n": 17, "bins": 256, "data": "zipf"},
        {"n": 1000, "bins": 10, "data": "zipf"},
        {"n": 4099, "bins": 256, "data": "constant"},
        {"n": 3 * CHUNK - 5, "bins": 256, "data": "zipf"},
    ),
    parameters=("bins",),
    kinds={"data": KINDS},
    accepts_empty=True,
)


def _requires(size: Size) -> str | None:
    if size["bins"] > MAX_BINS:
        return f"bins may be at most {MAX_BINS}, because a value is a byte"
    if size["n"] >= 1 << 32:
        return "n may be at most 4294967295, because a count has 32 bits"
    return None


def _whole_grid(values_per_block: int) -> Callable[[Size], int]:
    return lambda size: max(1, ceil_div(size["n"], values_per_block))


def _resident(values_per_block: int) -> Callable[[Size], int]:
    """At most as many blocks as the GPU holds at once, each with enough values to make its copy pay."""
    return lambda size: min(RESIDENT_BLOCKS, max(1, ceil_div(size["n"], values_per_block)))


def _rung(
    name: str,
    idea: str,
    blocks: Callable[[Size], int],
    block: int = THREADS,
    shared_per_bin: int = 0,
    alignment: Mapping[str, int] | None = None,
) -> Rung:
    """A rung of two launches: one block zeroes the counts, then ``blocks(size)`` blocks count."""

    def launches(size: Size) -> tuple[Launch, ...]:
        bins, args = size["bins"], ("values", "counts", np.uint64(size["n"]))
        return (
            Launch(f"histogram_clear<{bins}>", (1,), (block,), ("counts",)),
            Launch(f"histogram_{name}<{bins}>", (blocks(size),), (block,), args, shared_per_bin * bins),
        )

    return Rung(name, idea, launches, requires=_requires, alignment=alignment or {})


def _cub(arrays: dict[str, Any], size: Size):
    return cub.histogram(arrays["values"], arrays["counts"])


def _triton(arrays: dict[str, Any], size: Size):
    return triton_peers.histogram(arrays["values"], arrays["counts"])


def _cupy(arrays: dict[str, Any], size: Size):
    import cupy
    from cupy.cuda.cub import cub_histogram

    values, counts = arrays["values"], arrays["counts"]

    def enqueue() -> None:
        counts[...] = cub_histogram(values, cupy.zeros(size["bins"], dtype=cupy.int64), size["bins"] + 1)

    return enqueue


ALIGNED = {"values": QUAD}

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        _rung("global", "one atomic in global memory per value", _whole_grid(SMALL_BLOCK), SMALL_BLOCK),
        _rung("shared", "a private copy per block, in shared memory", _whole_grid(THREADS)),
        _rung("coarsened", "few blocks, each in a loop", _resident(THREADS * QUAD)),
        _rung("vectorised", "16 values per load", _resident(CHUNK), alignment=ALIGNED),
        _rung("per_warp", "a copy per warp", _resident(CHUNK), alignment=ALIGNED),
        _rung("per_lane", "a copy per lane, in a bank of its own", _resident(CHUNK), alignment=ALIGNED),
        _rung("unrolled", "four loads before the first value is counted", _resident(CHUNK), alignment=ALIGNED),
        _rung("byte_perm", "a byte permute makes the address", _resident(CHUNK), shared_per_bin=256, alignment=ALIGNED),
    ),
    peers=(
        Peer("CUB", _cub, cub.compute("DeviceHistogram::HistogramEven", "32-bit counts")),
        Peer("Triton", _triton, triton_peers.triton("tl.histogram", "32-bit counts"), swept=False),
        Peer(
            "CuPy bincount",
            _cupy,
            cub.inside_cupy("DeviceHistogram::HistogramEven, which bincount calls", "64-bit counts"),
        ),
    ),
)
