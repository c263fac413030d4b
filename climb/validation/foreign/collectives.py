"""CUB's collectives, through its headers; compiling them takes seconds."""

from __future__ import annotations

import numpy as np

from climb.emulator import Race

from .program import Project, Steps, close, empty, exact, floats, integers, launch

Random = np.random.Generator
cub = Project("NVIDIA/cccl", "cub")


@cub("cub/cub/block/block_scan.cuh", {1: Race}, thorough=True)
def two_scans(rng: Random) -> Steps:
    x, sums, most = integers(rng, -50, 50, 64), empty(64, dtype=np.int32), empty(64, dtype=np.int32)
    return Steps(
        [launch("two_scans", 1, 64, x, sums, most)],
        [exact(sums, np.cumsum(x) - x), exact(most, np.maximum.accumulate(x))],
    )


@cub("cub/cub/block/block_radix_sort.cuh", thorough=True)
def sort_pairs(rng: Random) -> Steps:
    keys, vals = integers(rng, 0, 4096, 128, dtype=np.uint32), np.arange(128, dtype=np.int32)
    order = np.argsort(keys, kind="stable")
    return Steps([launch("sort_pairs", 1, 64, keys, vals)], [exact(keys, keys[order]), exact(vals, order)])


@cub("cub/cub/warp/warp_reduce.cuh", thorough=True)
def segment_sums(rng: Random) -> Steps:
    x, head, out = floats(rng, 64), (rng.random(64) < 0.2).astype(np.int32), np.zeros(64, np.float32)
    heads = (head > 0) | (np.arange(64) % 32 == 0)
    starts = np.flatnonzero(heads)
    expected = np.zeros(64)
    expected[starts] = np.add.reduceat(x.astype(np.float64), starts)
    return Steps([launch("segment_sums", 1, 64, x, head, out)], [close(out, expected)])
