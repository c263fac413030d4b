"""Addresses of shared memory in a cluster hold the rank of their block, as on an H200 (0x410, 0x1000410, 0x2000410)."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device
from test_warpgroup_products import TILE

from climb.emulator import AsyncMisuse, OutOfBounds
from climb.emulator.runtime.tensor_cores.descriptors import swallow

SOURCE = r"""
#define ASM asm volatile
#define ADDRESS(v) (unsigned)__cvta_generic_to_shared(&v)
#define KERNEL extern "C" __global__ void __cluster_dims__(4, 1, 1)
__device__ unsigned rank() { unsigned r; ASM("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ void meet() { ASM("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory"); }
KERNEL addresses(unsigned* o, int) {
    __shared__ unsigned first[4], second;
    extern __shared__ unsigned rest[];
    if (threadIdx.x) return;
    first[blockIdx.x % 4] = second = rest[0] = 1;
    unsigned* at = o + 8 * blockIdx.x;
    at[0] = ADDRESS(first); at[1] = ADDRESS(first[2]); at[2] = ADDRESS(second); at[3] = ADDRESS(rest[1]);
    at[4] = (unsigned)(unsigned long long)rest;
    ASM("mapa.shared::cluster.u32 %0, %1, 3;" : "=r"(at[5]) : "r"(ADDRESS(second)));
    ASM("getctarank.shared::cluster.u32 %0, %1;" : "=r"(at[6]) : "r"(ADDRESS(second)));
    at[7] = (unsigned)((unsigned long long)&second - (unsigned long long)__cvta_shared_to_generic(0));
}
KERNEL reads(unsigned* o, int how) {
    __shared__ unsigned own;
    unsigned at = ADDRESS(own), bare = at & 0xffffff, v = 0;
    if (threadIdx.x == 0) own = 100 + rank();
    meet();
    if (how == 0) ASM("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(at));
    if (how == 1) ASM("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(bare));
    if (how == 2) ASM("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(at));
    if (how == 3) ASM("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(bare));
    if (how == 4) ASM("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(bare | 2 << 24));
    if (how == 5) ASM("ld.u32 %0, [%1];" : "=r"(v) : "l"(__cvta_shared_to_generic(at)));
    if (how == 6) ASM("ld.u32 %0, [%1];" : "=r"(v) : "l"(__cvta_shared_to_generic(bare)));
    if (how == 7) ASM("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(bare | 9 << 24));
    if (how == 8) ASM("mapa.shared::cluster.u32 %0, %1, 4;" : "=r"(v) : "r"(at));
    meet();
    o[blockIdx.x] = v;
}
"""


@pytest.fixture(scope="module")
def device():
    return Device(SOURCE)


def test_the_address_of_a_variable_has_the_rank_of_the_block_that_takes_it(device):
    out = np.zeros((8, 8), np.uint32)
    device.launch("addresses", 8, 32, out, 0, shared=64)
    ranks = np.arange(8) % 4
    low = out & 0xFFFFFF
    assert np.array_equal(out[:, :5] >> 24, np.repeat(ranks[:, None], 5, axis=1))
    assert (low[:, :6] == low[0, :6]).all()
    assert (low[:, 1] - low[:, 0] == 8).all()
    assert (out[:, 5] == (3 << 24 | low[:, 2])).all()
    assert out[:, 6].tolist() == ranks.tolist()
    assert np.array_equal(out[:, 7], out[:, 2])


RANKS = [100, 101, 102, 103]


@pytest.mark.parametrize(("how", "values"), [(0, RANKS), (2, RANKS), (3, [100] * 4), (5, RANKS), (6, [100] * 4)])
def test_an_address_of_the_window_of_the_cluster_without_the_rank_is_that_of_rank_0(device, how, values):
    """The values are an H200's."""
    out = np.zeros(8, np.uint32)
    device.launch("reads", 8, 32, out, how)
    assert out.tolist() == 2 * values


@pytest.mark.parametrize(
    ("how", "what"),
    [
        (1, r"rank 0, by an instruction on its own block's \(shared::cta\), of rank 1"),
        (4, r"rank 2, by an instruction on its own block's \(shared::cta\), of rank 0"),
        (7, "rank 9 of a cluster of 4 blocks"),
        (8, "the block of rank 4 of a cluster of 4 blocks"),
    ],
)
def test_a_rank_that_the_instruction_cannot_reach_is_out_of_bounds(device, how, what):
    """An H200 stops at all of them: illegal instruction, or launch failure."""
    with pytest.raises(OutOfBounds, match=what):
        device.launch("reads", 8, 32, np.zeros(8, np.uint32), how)


CLUSTER = TILE.replace("void tile(", "void __cluster_dims__(2, 1, 1) tile(")
# Without a swizzle, the leading dimension offset is between the two halves of a row of k.
PLAIN = CLUSTER.replace("| 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62", "| 128ull >> 4 << 16 | 256ull >> 4 << 32")
BARE, MASKED = "__cvta_generic_to_shared(at) >> 4", "(__cvta_generic_to_shared(at) & 0x3ffff) >> 4"


def _tile(source: str) -> tuple[np.ndarray, np.ndarray]:
    """The result of a launch of two blocks, and the right result for swizzled tiles."""
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-4, 5, size=shape).astype(np.float16) for shape in ((256, 64), (128, 64)))
    d = np.zeros((256, 128), np.float32)
    Device(source, arch="sm_90a").launch("tile", 2, 256, a, b, d)
    return d, a.astype(np.float32) @ b.astype(np.float32).T + 1


def test_a_descriptor_that_swallows_the_rank_of_its_block_is_a_fault():
    assert BARE in PLAIN and PLAIN != CLUSTER
    with pytest.raises(AsyncMisuse, match=r"the descriptor of . holds the rank of its block .* mask the address"):
        _tile(PLAIN)
    _tile(PLAIN.replace(BARE, MASKED))
    _tile(PLAIN.replace("__cluster_dims__(2, 1, 1) ", ""))


@pytest.mark.parametrize("how", [BARE, MASKED])
def test_the_rank_does_no_harm_where_the_leading_dimension_offset_is_not_used(how):
    """An H200 computes the right product from either."""
    found, expected = _tile(CLUSTER.replace(BARE, how))
    assert np.array_equal(found, expected)


def test_ranks_that_are_no_part_of_the_descriptors_are_not_looked_for_in_them():
    """The leading dimension offset is the same in all blocks, and its bits happen to contain those of rank 2."""
    assert not swallow(0x280, 0, 0x280, 2)
    assert swallow(0x200, 0, 0x280, 2) and swallow(0x240, 1, 0x280, 2)


def test_a_rank_that_is_ored_to_bits_that_are_set_in_part_is_found():
    """0x240 | 3 << 6 is 0x2c0, which no addition of ranks makes of 0x240: only rank 0 shows the bits without a rank."""
    assert swallow(0x240, 0, 0x2C0, 3) and swallow(0x2C0, 3, 0x240, 0)
    assert not swallow(0x240, 2, 0x2C0, 3) and not swallow(0x2C0, 3, 0x240, 2)
    assert not swallow(0x240, 0, 0x380, 3) and not swallow(0x380, 3, 0x240, 0)


def test_an_access_to_the_own_block_is_counted_as_one_of_shared_memory(device):
    """All blocks of a cluster read the memory of rank 0, by its address in the cluster. An H200 counts so too."""
    counters = device.launch("reads", 4, 32, np.zeros(4, np.uint32), 3)
    loads = {one.kind: (one.requests, one.lanes, one.wavefronts) for one in counters.lines if one.kind.endswith("load")}
    assert loads["shared load"] == (1, 32, 1) and loads["cluster load"] == (3, 96, 0)
