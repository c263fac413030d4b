"""Partial synchronisation: which accesses are ordered if only some lanes, or some warps, wait for each other."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device
from tools.thorough import sparse

from climb.emulator import ALL_CHECKS, Race, checking
from climb.emulator.checks.partial_synchronization import PartialSynchronization

HEAD = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ void wait_for(int n, int threads) { asm volatile("bar.sync %0, %1;" :: "r"(n), "r"(threads) : "memory"); }
__device__ void arrive(int n, int threads) { asm volatile("bar.arrive %0, %1;" :: "r"(n), "r"(threads) : "memory"); }
extern "C" __global__ void k(const int* x, int* o) { __shared__ int s[128]; int t = threadIdx.x;
auto block = cg::this_thread_block(); auto tile = cg::tiled_partition<16>(block);
auto quad = cg::tiled_partition<4>(block); (void)tile; (void)quad;
"""


def run(body: str, threads: int, blocks: int = 1) -> np.ndarray:
    x, out = np.arange(threads * blocks, dtype=np.int32), np.zeros(threads * blocks, np.int32)
    with checking(ALL_CHECKS):
        Device(HEAD + "int i = blockIdx.x * blockDim.x + t;\n" + body + "}").launch("k", blocks, threads, x, out)
    return out


RACES = {
    "halves of a warp": "s[t] = x[i]; __syncwarp(0xffffu << (t & 16)); o[i] = s[t ^ 31];",
    "each lane alone": "s[t] = x[i]; __syncwarp(1u << (t & 31)); o[i] = s[t ^ 1];",
    "another tile": "s[t] = x[i]; tile.sync(); o[i] = s[t ^ 16];",
    "another quad, after the tile": "tile.sync(); s[t] = x[i]; quad.sync(); o[i] = s[t ^ 4];",
    "a warp that is not waited for": "s[t] = x[i]; if (t < 64) { wait_for(1, 64); o[i] = s[t + 32]; }",
    "what follows an arrival": """if (t < 32) { s[t] = x[i]; arrive(1, 64); s[t] = -1; }
        else if (t < 64) { wait_for(1, 64); o[i] = s[t - 32]; }""",
    "two barriers, no chain": """if (t < 32) { s[t] = x[i]; arrive(2, 64); } else if (t < 64) { wait_for(1, 64); }
        else { arrive(1, 64); wait_for(2, 64); s[t] = 1; } if (t >= 32 && t < 64) o[i] = s[t - 32];""",
}


@pytest.mark.parametrize("name", sparse(RACES))
def test_an_access_by_threads_not_waited_for_is_a_race(name: str) -> None:
    with pytest.raises(Race):
        run(RACES[name], 96, blocks=3)


ORDERED = {
    "halves of a warp": ("s[t] = x[i]; __syncwarp(0xffffu << (t & 16)); o[i] = s[t ^ 15];", lambda t: t ^ 15),
    "its tile": ("s[t] = x[i]; tile.sync(); o[i] = s[t ^ 15];", lambda t: t ^ 15),
    "its tile, and then its quad": ("s[t] = x[i]; tile.sync(); quad.sync(); o[i] = s[t ^ 12];", lambda t: t ^ 12),
    "from quad to quad": (
        """s[t] = 0; tile.sync(); if (t % 16 == 0) s[t] = x[i]; quad.sync(); if (t % 16 == 3) s[t] = s[t - 3];
        unsigned pair = 0x18u << (t & 16); if (t % 16 == 3 || t % 16 == 4) __syncwarp(pair);
        if (t % 16 == 4) s[t] = s[t - 1] + s[t - 4]; o[i] = t % 16 == 4 ? s[t] : 0;""",
        lambda t: np.where(t % 16 == 4, 2 * (t - 4), 0),
    ),
    "many readers, one writer": (
        """s[t] = x[i]; __syncwarp(); int sum = s[t & ~15] + s[(t & ~15) + 1]; tile.sync();
        if (t % 16 == 0) s[t] = 0; o[i] = sum;""",
        lambda t: 2 * (t & ~15) + 1,
    ),
    "from warp to warp": (
        """if (t < 32) { s[t] = x[i]; wait_for(1, 64); } else if (t < 64) { wait_for(1, 64); wait_for(2, 64); }
        else { wait_for(2, 64); o[i] = s[t - 64]; }""",
        lambda t: np.where(t >= 64, t - 64, 0),
    ),
    "everyone at a numbered barrier": ("s[t] = x[i]; wait_for(3, 96); o[i] = s[95 - t];", lambda t: 95 - t),
    "a barrier for all, after some": (
        """s[t] = x[i]; if (t < 64) wait_for(1, 64); tile.sync(); __syncthreads(); o[i] = s[95 - t];
        __syncthreads(); s[t] = 0;""",
        lambda t: 95 - t,
    ),
}


@pytest.mark.parametrize("name", ORDERED)
def test_no_race_if_all_threads_involved_were_waited_for(name: str) -> None:
    body, wanted = ORDERED[name]
    assert run(body, 96).tolist() == np.asarray(wanted(np.arange(96))).tolist()
    several = run(body, 96, blocks=3).reshape(3, 96)
    assert (several[0] == wanted(np.arange(96))).all()


def test_order_is_transitive_as_in_a_model_with_sets() -> None:
    """Compare random synchronisations with sets of the steps that each member knows of."""
    rng = np.random.default_rng(3)
    order, knows = PartialSynchronization(2, 32), {(g, t): {} for g in range(2) for t in range(32)}
    base = np.zeros((2, 32), np.int64)
    for now in range(1, 60):
        groups = np.array([0, 1, 1])
        masks = rng.integers(1, 1 << 32, 3, dtype=np.uint64).astype(np.uint32)
        masks[2] &= ~masks[1]
        order.synchronize(groups, masks[:, None] >> np.arange(32, dtype=np.uint32) & 1 == 1, base, now)
        for g, mask in zip(groups.tolist(), masks.tolist(), strict=True):
            members = [t for t in range(32) if mask >> t & 1]
            joint: dict[int, int] = {}
            for t in members:
                for u, time in knows[g, t].items():
                    joint[u] = max(time, joint.get(u, 0))
            for t in members:
                knows[g, t] = {**joint, **dict.fromkeys(members, now)}
        wanted = [[[knows[g, t].get(u, 0) for u in range(32)] for t in range(32)] for g in range(2)]
        assert order.since.tolist() == wanted
