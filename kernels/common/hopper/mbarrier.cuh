// Barriers in shared memory that count arrivals and bytes (mbarrier, sm_90). A barrier
// goes through phases: the first has parity 0, the next 1, then 0 again.
#pragma once

#include "../async_copy.cuh"

using Barrier = unsigned long long;

__device__ __forceinline__ void mbarrier_init(Barrier* barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(
                     shared_address(barrier)),
                 "r"(arrivals)
                 : "memory");
}

// Makes initialised barriers visible to the copy engine and to the whole cluster.
__device__ __forceinline__ void fence_mbarrier_init()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive(Barrier* barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(
                     shared_address(barrier))
                 : "memory");
}

// Arrives, and keeps the phase open until the copy engine has delivered `bytes`.
__device__ __forceinline__ void mbarrier_arrive_expect(Barrier* barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

// Arrives at the corresponding barrier of block `rank` of this cluster, to let the copy
// engine refill a slot. If other blocks read what this thread wrote, use the slower
// mbarrier_release_at, which makes those writes visible first.
__device__ __forceinline__ void mbarrier_arrive_at(Barrier* barrier, unsigned rank)
{
    asm volatile(
        "{\n"
        ".reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
        "}" ::"r"(shared_address(barrier)),
        "r"(rank)
        : "memory");
}
__device__ __forceinline__ void mbarrier_release_at(Barrier* barrier, unsigned rank)
{
    asm volatile(
        "{\n"
        ".reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n"
        "}" ::"r"(shared_address(barrier)),
        "r"(rank)
        : "memory");
}

__device__ __forceinline__ bool mbarrier_test(Barrier* barrier, unsigned parity)
{
    unsigned over;
    asm volatile(
        "{\n"
        ".reg .pred over;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
        "selp.u32 %0, 1, 0, over;\n"
        "}"
        : "=r"(over)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
    return over != 0;
}

// Waits until the phase of this parity has ended.
__device__ __forceinline__ void mbarrier_wait(Barrier* barrier, unsigned parity)
{
    while (!mbarrier_test(barrier, parity)) {
    }
}

// Also acquires what other blocks of the cluster wrote before they arrived.
__device__ __forceinline__ void mbarrier_wait_cluster(Barrier* barrier, unsigned parity)
{
    unsigned over = 0;
    while (over == 0) {
        asm volatile(
            "{\n"
            ".reg .pred over;\n"
            "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 over, [%1], %2;\n"
            "selp.u32 %0, 1, 0, over;\n"
            "}"
            : "=r"(over)
            : "r"(shared_address(barrier)), "r"(parity)
            : "memory");
    }
}
