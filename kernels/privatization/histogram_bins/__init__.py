"""Histogram of 16-bit values: how many copies of the bins pay when there are more than 256 bins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.libraries import cub, triton_peers
from climb.bench.problem import Argument, Launch, Peer, Problem, Rung, Size, ceil_div

WORD = 4
THREADS = 1024
SMS = 132
#: Values that one load brings, and loads that a thread has in flight.
QUAD, UNROLL = 8, 4
#: Shared memory in bytes: of an SM, of a block at most, and reserved by the system for each block.
SHARED_OF_SM, SHARED_OF_BLOCK, RESERVED = 228 * 1024, 227 * 1024, 1024
MAX_BINS = 1 << 16
#: Values counted at a time on the host.
PIECE = 1 << 24


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    counts = np.zeros(MAX_BINS, dtype=np.int64)
    for start in range(0, size["n"], PIECE):
        counts += np.bincount(inputs["values"][start : start + PIECE], minlength=MAX_BINS)
    return {"counts": counts[: size["bins"]].astype(np.uint32)}


problem = Problem(
    name="histogram_bins",
    title="Histogram of n 16-bit values",
    size_keys=("n", "bins"),
    arguments=(
        Argument("values", "uint16", ("n",)),
        Argument("counts", "uint32", ("bins",), role="output"),
    ),
    make_inputs=lambda size, rng: {"values": rng.integers(0, size["bins"], size["n"], dtype=np.uint16)},
    reference=_reference,
    tolerance=lambda size: 0.0,  # whole numbers
    flops=lambda size: 0,
    bytes=lambda size: 2 * size["n"] + WORD * size["bins"],
    headline=({"n": 1 << 29, "bins": 1024},),
    sweep=tuple({"n": 1 << 29, "bins": bins} for bins in (512, 2048, 4096)),
    check=(
        {"n": 0, "bins": 512},
        {"n": 1, "bins": 1},
        {"n": 9, "bins": 7},
        {"n": 2000, "bins": 300},
        {"n": 2 * UNROLL * THREADS * QUAD + 75, "bins": 1024},
    ),
    parameters=("bins",),
    accepts_empty=True,
)


def _shared_bytes(copies: int, size: Size) -> int:
    return WORD * copies * size["bins"]


def _requires(copies: int):
    def requires(size: Size) -> str | None:
        if size["bins"] > MAX_BINS:
            return f"bins may be at most {MAX_BINS}, because a value has 16 bits"
        if _shared_bytes(copies, size) > SHARED_OF_BLOCK:
            most = SHARED_OF_BLOCK // (WORD * copies)
            return (
                f"bins may be at most {most}, because {copies} copies must fit the {SHARED_OF_BLOCK} bytes of a block"
            )
        if size["n"] >= 1 << 32:
            return "n may be at most 4294967295, because a count has 32 bits"
        return None

    return requires


def _launches(copies: int):
    def launches(size: Size) -> tuple[Launch, ...]:
        shared = _shared_bytes(copies, size)
        per_sm = min(2, SHARED_OF_SM // (shared + RESERVED))
        blocks = max(1, ceil_div(size["n"], THREADS * QUAD * UNROLL))
        grid, args = (min(blocks, per_sm * SMS),), ("values", "counts", np.uint64(size["n"]))
        return (
            Launch(f"histogram_clear<{size['bins']}>", (1,), (THREADS,), ("counts",)),
            Launch(f"histogram_copies<{size['bins']}>", grid, (THREADS,), args, shared),
        )

    return launches


def _rung(copies: int, idea: str) -> Rung:
    return Rung(f"copies_{copies}", idea, _launches(copies), alignment={"values": 16},
                requires=_requires(copies))  # fmt: skip


def _cub(arrays: dict[str, Any], size: Size):
    return cub.histogram(arrays["values"], arrays["counts"])


def _triton(arrays: dict[str, Any], size: Size):
    return triton_peers.histogram(arrays["values"], arrays["counts"])


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        _rung(1, "one copy per block"),
        _rung(2, "a copy shared by 16 lanes"),
        _rung(4, "a copy shared by eight lanes"),
        _rung(8, "a copy shared by four lanes"),
        _rung(16, "a copy shared by two lanes"),
        _rung(32, "a copy per lane, in a bank of its own"),
    ),
    peers=(
        Peer("CUB", _cub, cub.compute("DeviceHistogram::HistogramEven", "32-bit counts")),
        Peer("Triton", _triton, triton_peers.triton("tl.histogram", "32-bit counts")),
    ),
)
