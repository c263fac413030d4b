"""mbarriers that other blocks of the cluster use after fence.mbarrier_init and a relaxed barrier of the cluster."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device

from climb.emulator import Race

SOURCE = r"""
#define ASM asm volatile
#define ADDRESS(v) (unsigned)__cvta_generic_to_shared(v)
__device__ unsigned rank() { unsigned r; ASM("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ unsigned at(void* p, unsigned rank) {
    unsigned out; ASM("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(out) : "r"(ADDRESS(p)), "r"(rank));
    return out;
}
__device__ void publish() { ASM("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ void meet() {
    ASM("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    ASM("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// Each block's barrier expects an arrival of every block; the data come from one of them.
extern "C" __global__ void __cluster_dims__(2, 1, 1) signal(unsigned* o, int how) {
    __shared__ unsigned long long bar;
    __shared__ unsigned data;
    unsigned t = threadIdx.x;
    if (t == 0) {
        if (how == 3) publish();  // before there is anything to publish
        ASM("mbarrier.init.shared.b64 [%0], 2;" :: "r"(ADDRESS(&bar)));
        if (how != 1 && how != 2 && how != 3) publish();
        if (how == 4) ASM("st.shared.u32 [%0], 7;" :: "r"(ADDRESS(&data)) : "memory");
        if (how == 5) { ASM("mbarrier.inval.shared.b64 [%0];" :: "r"(ADDRESS(&bar)));
                        ASM("mbarrier.init.shared.b64 [%0], 2;" :: "r"(ADDRESS(&bar))); }
    }
    if (how == 1 && t == 32) publish();  // another thread's fence
    __syncwarp();
    if (how == 6 && t >= 32) meet();
    if (how != 6) meet();
    if (how == 2 && t == 0) publish();  // too late
    if (how == 6 && t < 32) ASM("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    if (how == 4 && t == 40) ASM("ld.shared.u32 %0, [%1];" : "=r"(t) : "r"(ADDRESS(&data)) : "memory");
    for (unsigned r = 0; r < 2; r++)
        if (t == 0)
            ASM("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(at(&bar, r)) : "memory");
    if (how == 6 && t < 32) ASM("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    if (t % 32 == 0) {
        unsigned done = 0;
        while (!done)
            ASM("{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;"
                "selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(ADDRESS(&bar)) : "memory");
        o[blockIdx.x * 2 + t / 32] = 1;
    }
    ASM("barrier.cluster.arrive.aligned;" ::: "memory");
    ASM("barrier.cluster.wait.aligned;" ::: "memory");
}
"""


@pytest.fixture(scope="module")
def device():
    return Device(SOURCE)


def signal(device: Device, how: int) -> list[int]:
    """Run four blocks, two clusters, of two warps."""
    out = np.zeros(8, np.uint32)
    device.launch("signal", 4, 64, out, how)
    return out.tolist()


def test_a_published_initialisation_is_known_after_a_relaxed_barrier_of_the_cluster(device):
    """Also to the threads of the same block, without __syncthreads."""
    assert signal(device, 0) == [1] * 8


@pytest.mark.parametrize(
    "how",
    [1, 2, 3, 5],
    ids=["another thread's fence", "a fence after the barrier", "a fence before", "initialised once more"],
)
def test_an_initialisation_that_its_thread_has_not_published_is_a_race(device, how):
    with pytest.raises(Race, match=r"of bar, which thread \(0,0,0\)( of block \(\d,0,0\))? writes"):
        signal(device, how)


def test_the_fence_publishes_no_other_writes(device):
    with pytest.raises(Race, match="of data, which thread"):
        signal(device, 4)


def test_a_thread_that_has_not_waited_does_not_know_of_the_initialisation(device):
    """The first warp of each block has arrived at the barrier of the cluster, and waits only later."""
    with pytest.raises(Race, match=r"of bar, which thread \(0,0,0\) of block"):
        signal(device, 6)
