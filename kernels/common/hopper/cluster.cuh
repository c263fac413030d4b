// Clusters (sm_90): blocks that run at the same time on neighbouring SMs and can access
// each other's shared memory.
#pragma once

__device__ __forceinline__ unsigned cluster_rank()
{
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// A barrier for all threads of the cluster, in two halves.
__device__ __forceinline__ void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_sync()
{
    cluster_arrive();
    cluster_wait();
}

// Maps an address in this block's shared memory to block `rank` of the cluster.
template <typename T> __device__ __forceinline__ T* at_rank(T* pointer, unsigned rank)
{
    unsigned long long there;
    asm volatile("mapa.u64 %0, %1, %2;"
                 : "=l"(there)
                 : "l"(reinterpret_cast<unsigned long long>(pointer)), "r"(rank));
    return reinterpret_cast<T*>(there);
}
