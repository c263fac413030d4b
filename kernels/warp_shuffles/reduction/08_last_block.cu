// Idea: the block that finishes last adds up all blocks' sums, in a fixed order.
// From the rung before: a store and a ticket instead of an atomicAdd; one launch, and
// the same bits every time.
// Requires: source aligned to 16 bytes; a block of kThreads threads; one block per
// kChunk floats; one launch at a time.
constexpr int kThreads = 1024;
constexpr int kUnroll = 8;
constexpr int kWidth = sizeof(float4) / sizeof(float);
constexpr int kChunk = kThreads * kUnroll * kWidth;
#include "block_sum.cuh"

// The sum of this thread's floats of the block's chunk.
__device__ float thread_sum(const float* __restrict__ source, size_t n)
{
    const size_t start = static_cast<size_t>(blockIdx.x) * kChunk;
    float sum = 0.0f;
    if (start + kChunk <= n) {
        const float4* quads = reinterpret_cast<const float4*>(source + start);
        float4 value[kUnroll];
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            value[u] = quads[threadIdx.x + u * kThreads];
        }
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            sum += (value[u].x + value[u].y) + (value[u].z + value[u].w);
        }
    } else {
        for (size_t i = start + threadIdx.x; i < n; i += kThreads) {
            sum += source[i];
        }
    }
    return sum;
}

// The number of blocks that have finished. After the last one, atomicInc wraps it to
// zero, ready for the next launch.
__device__ unsigned tickets = 0;

__global__ void __launch_bounds__(kThreads) sum_last_block(
    const float* __restrict__ source, float* __restrict__ sums,
    float* __restrict__ total, size_t n)
{
    __shared__ bool last;
    float sum = block_sum(thread_sum(source, n));
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
        __threadfence();  // the sum is visible before the ticket is taken
        last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();  // thread 0 has written `last` before the block reads it
    if (last) {
        __threadfence();  // the other blocks' sums are read after their tickets
        sum = 0.0f;
        for (unsigned i = threadIdx.x; i < gridDim.x; i += kThreads) {
            // From L2: this SM's L1 is not coherent with other SMs' writes.
            sum += __ldcg(sums + i);
        }
        sum = block_sum(sum);
        if (threadIdx.x == 0) {
            *total = sum;
        }
    }
}
