// Reverses x: a block reverses its chunk in shared memory, and one thread stores it.
#include "hopper/tma.cuh"

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads) reversed(const float* x, float* y, int n)
{
    __shared__ __align__(16) float chunk[kThreads];
    const int first = blockIdx.x * kThreads;
    chunk[kThreads - 1 - threadIdx.x] = x[first + threadIdx.x];
    fence_proxy_async();  // by every thread that has written
    __syncthreads();  // the chunk is complete
    if (threadIdx.x == 0) {
        bulk_store(y + n - kThreads - first, chunk, sizeof(chunk));
        bulk_commit();
        bulk_wait_read<0>();  // the engine has read the chunk
    }
}
