// The copy engine (TMA, sm_90): one thread starts a copy of a box of a tensor, whose
// bytes are counted at an mbarrier. A tensor map describes the tensor's layout and how
// boxes are swizzled.
#pragma once

#include "mbarrier.cuh"

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

// Makes this thread's writes to shared memory visible to the copy engine and to wgmma.
__device__ __forceinline__ void fence_proxy_async()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void tma_prefetch(const TensorMap& map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Copies the box of a two-dimensional tensor that starts in column x, row y.
__device__ __forceinline__ void tma_load(
    void* to, const TensorMap& from, int x, int y, Barrier* barrier)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(to)),
        "l"(&from), "r"(x), "r"(y), "r"(shared_address(barrier))
        : "memory");
}

// Copies the box to the same address in every block of the cluster whose bit is set in
// `ranks`, and counts its bytes at each block's barrier.
__device__ __forceinline__ void tma_load_multicast(
    void* to, const TensorMap& from, int x, int y, Barrier* barrier,
    unsigned short ranks)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(to)),
        "l"(&from), "r"(x), "r"(y), "r"(shared_address(barrier)), "h"(ranks)
        : "memory");
}

__device__ __forceinline__ void tma_load(
    void* to, const TensorMap& from, int x, int y, int z, Barrier* barrier)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared_address(to)),
        "l"(&from), "r"(x), "r"(y), "r"(z), "r"(shared_address(barrier))
        : "memory");
}

// Writes a box from shared memory to a tensor, except elements outside the tensor.
__device__ __forceinline__ void tma_store(
    const TensorMap& to, int x, int y, const void* from)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::
            "l"(&to),
        "r"(x), "r"(y), "r"(shared_address(from))
        : "memory");
}

// Copies contiguous bytes, without a tensor map: 16-byte aligned, a multiple of 16.
__device__ __forceinline__ void bulk_load(
    void* to, const void* from, int bytes, Barrier* barrier)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(barrier))
        : "memory");
}
__device__ __forceinline__ void bulk_store(void* to, const void* from, int bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::
                     "l"(to),
                 "r"(shared_address(from)), "r"(bytes)
                 : "memory");
}

// Closes the group of this thread's stores; waits until all but `kOpen` groups have
// read their source (bulk_wait_read) or are complete (bulk_wait).
__device__ __forceinline__ void bulk_commit()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
template <int kOpen> __device__ __forceinline__ void bulk_wait_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kOpen) : "memory");
}
template <int kOpen> __device__ __forceinline__ void bulk_wait()
{
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kOpen) : "memory");
}

// Reduces or raises this warpgroup's registers per thread; all its warps must call it.
template <int kRegisters> __device__ __forceinline__ void release_registers()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters> __device__ __forceinline__ void claim_registers()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
