// Reverses x: a block reverses its chunk in shared memory, and one thread stores it.
#include "hopper/tma.cuh"

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads) reversed(const float* x, float* y, int n)
{
    __shared__ __align__(16) float chunk[kThreads];
    const int first = blockIdx.x * kThreads;
    chunk[kThreads - 1 - threadIdx.x] = x[first + threadIdx.x];
    // TODO: the copy engine reads shared memory through another path than the threads.
    __syncthreads();  // the chunk is complete
    if (threadIdx.x == 0) {
        bulk_store(y + n - kThreads - first, chunk, sizeof(chunk));
        bulk_commit();
        // TODO: the block's shared memory is reused as soon as the block ends.
    }
}
