"""Accesses to the shared memory of a block of the cluster that may not have begun, or may have left the kernel."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device

from climb.emulator import ClusterLifetime, Race, checking

SOURCE = r"""
#define ASM asm volatile
#define ADDRESS(v) (unsigned)__cvta_generic_to_shared(v)
#define KERNEL extern "C" __global__ void __cluster_dims__(2, 1, 1)
__device__ unsigned rank() { unsigned r; ASM("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ void arrive() { ASM("barrier.cluster.arrive.aligned;" ::: "memory"); }
__device__ void relaxed() { ASM("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ void wait() { ASM("barrier.cluster.wait.aligned;" ::: "memory"); }
__device__ void meet() { arrive(); wait(); }
__device__ unsigned at(void* p, unsigned rank) {
    unsigned out; ASM("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(out) : "r"(ADDRESS(p)), "r"(rank));
    return out;
}
__device__ void give(unsigned to, unsigned v) { ASM("st.shared::cluster.u32 [%0], %1;" :: "r"(to), "r"(v) : "memory"); }
KERNEL stores(unsigned* o, unsigned* flag, int how) {
    __shared__ unsigned from[2];
    __shared__ unsigned long long bar;
    unsigned t = threadIdx.x, v = blockIdx.x;
    if (how == 1) arrive();
    if (how == 2) relaxed();
    if (how == 3 && t < 32) arrive();
    if (how == 3 && t >= 32) { arrive(); wait(); }
    if (how == 4) {  // a flag that a thread of the first block has set, with a fence
        if (rank() == 0 && t == 0) { __threadfence(); atomicExch(flag + blockIdx.x / 2, 1u); }
        if (rank() == 1 && t == 0) { while (atomicAdd(flag + blockIdx.x / 2, 0u) == 0) {} __threadfence(); }
    }
    if (how == 5 && t == 0) {
        ASM("mbarrier.init.shared.b64 [%0], 2;" :: "r"(ADDRESS(&bar)));
        ASM("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (how == 1 || how == 2) wait();
    if (t == 0 && how == 5)
        ASM("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(at(&bar, 0)) : "memory");
    if (t == 0 && how == 6) ASM("red.shared::cluster.add.u32 [%0], 1;" :: "r"(at(from, 0)) : "memory");
    if (t == 0 && how == 7) ASM("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(at(from, 0)) : "memory");
    if (t == 0 && how < 5) give(at(from + rank(), 0), blockIdx.x + 1);
    if (how != 3) meet();
    if (how == 3 && t < 32) wait();
    if (how == 3) { __syncthreads(); meet(); }
    if (rank() == 0 && t < 2 && how < 5) o[blockIdx.x + t] = from[t];
}
KERNEL leaves(unsigned* o, int keeps) {
    __shared__ unsigned own;
    if (threadIdx.x == 0) own = rank();
    meet();
    unsigned v; ASM("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(at(&own, rank() ^ 1)) : "memory");
    if (keeps) meet();
    o[blockIdx.x * blockDim.x + threadIdx.x] = v;
} // leaves
KERNEL one_leaves(unsigned* o, int cluster, int reader) {
    __shared__ unsigned own;
    if (threadIdx.x == 0) own = rank();
    meet();
    unsigned v = 0;
    if (rank() == reader && threadIdx.x == 37)
        ASM("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(at(&own, 1 - reader)) : "memory"); // the only one
    if (blockIdx.x / 2 != cluster) meet();
    o[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
extern "C" __global__ void __cluster_dims__(4, 1, 1) flags(unsigned* o, unsigned* flag, int sets, int waits, int owns) {
    __shared__ unsigned own;
    if (rank() == sets && threadIdx.x == 0) { __threadfence(); atomicExch(flag, 1u); }
    if (rank() == waits && threadIdx.x == 0) {
        while (atomicAdd(flag, 0u) == 0) {}
        __threadfence();
        give(at(&own, owns), 7);
        give(at(&own, owns), 8);
    }
    meet();
    if (rank() == owns && threadIdx.x == 0) o[0] = own;
}
"""


def line(text: str) -> int:
    """The line of the source that holds `text`."""
    return 1 + next(number for number, each in enumerate(SOURCE.splitlines()) if text in each)


@pytest.fixture(scope="module")
def device():
    return Device(SOURCE)


def stores(device: Device, how: int) -> list[int]:
    """The words that the first block of each of two clusters finds in its shared memory."""
    out = np.zeros(4, np.uint32)
    device.launch("stores", 4, 64, out, np.zeros(2, np.uint32), how)
    return out.tolist()


@pytest.mark.parametrize("how", [1, 2, 3, 4], ids=["barrier", "relaxed barrier", "another warp waits", "flag"])
def test_a_store_to_a_block_that_is_known_to_have_begun_is_no_fault(device, how):
    assert stores(device, how) == [1, 2, 3, 4]


@pytest.mark.parametrize(("how", "text"), [(0, "st.shared"), (6, "red.shared"), (7, "ld.shared")])
def test_an_access_to_a_block_that_may_not_have_begun_is_named_with_both_lines(device, how, text):
    with pytest.raises(ClusterLifetime, match=r"block \(0,0,0\), which may not have begun by then") as caught:
        stores(device, how)
    where, other = caught.value.where, caught.value.other
    begin = line("KERNEL stores")
    assert (where.line, where.block, where.thread, where.lanes) == (line(text), (1, 0, 0), (0, 0, 0), 1)
    assert (other.line, other.block) == (begin, (0, 0, 0))
    assert f"test.cu:{begin} " in str(caught.value)


@pytest.mark.parametrize(("sets", "waits"), [(0, 1), (1, 0), (1, 2), (2, 1), (3, 0)])
def test_a_flag_shows_that_the_block_that_sets_it_has_begun_and_no_other(device, sets, waits):
    """Four blocks of a warp and a half."""
    out = np.zeros(1, np.uint32)
    for owns in {0, 1, 2, 3} - {waits}:
        arguments = out, np.zeros(1, np.uint32), sets, waits, owns
        if owns == sets:
            device.launch("flags", 4, 48, *arguments)
            assert out[0] == 8
        else:
            with pytest.raises(ClusterLifetime, match=rf"block \({owns},0,0\), which may not have begun") as caught:
                device.launch("flags", 4, 48, *arguments)
            assert (caught.value.other.thread, caught.value.where.block) == ((0, 0, 0), (waits, 0, 0))


def test_an_arrival_at_an_mbarrier_that_another_block_initialises_is_a_race(device):
    with pytest.raises(Race, match=r"of bar, which thread \(0,0,0\) of block \(0,0,0\) writes"):
        stores(device, 5)


def test_without_the_search_for_races_in_shared_memory_no_begin_is_asked_for(device):
    with checking("global"):
        assert stores(device, 0) == [1, 2, 3, 4]


def test_a_read_of_a_block_that_may_have_left_is_named_with_both_lines(device):
    out = np.zeros(128, np.uint32)
    device.launch("leaves", 2, 64, out, 1)
    assert out.tolist() == [1] * 64 + [0] * 64
    with pytest.raises(ClusterLifetime, match="may have left the kernel by then") as caught:
        device.launch("leaves", 2, 64, out, 0)
    assert (caught.value.where.line, caught.value.other.line) == (line("&own, rank() ^ 1"), line("} // leaves"))


@pytest.mark.parametrize("reader", [0, 1])
@pytest.mark.parametrize("cluster", [0, 1, 2])
def test_the_cluster_in_which_a_block_may_have_left_is_named_and_no_other(device, cluster, reader):
    """Three clusters, whose blocks have a warp and a half; all but one meet before they end."""
    with pytest.raises(ClusterLifetime, match="may have left the kernel by then") as caught:
        device.launch("one_leaves", 6, 48, np.zeros(6 * 48, np.uint32), cluster, reader)
    where, other = caught.value.where, caught.value.other
    assert (where.line, where.block, where.thread) == (
        line("// the only one"),
        (2 * cluster + reader, 0, 0),
        (37, 0, 0),
    )
    assert (other.block, other.thread, other.lanes) == ((2 * cluster + 1 - reader, 0, 0), (0, 0, 0), 48)
