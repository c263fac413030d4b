// Idea: each block adds its sum to the total with one atomic, in one pass.
// From the rung before: atomicAdd instead of a store; a launch of one thread sets the
// total to zero first.
// Requires: source aligned to 16 bytes; a block of kThreads threads; one block per
// kChunk floats; sum_reset launched before it.
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

__global__ void sum_reset(float* __restrict__ total)
{
    *total = 0.0f;
}

__global__ void __launch_bounds__(kThreads)
    sum_atomics(const float* __restrict__ source, float* __restrict__ total, size_t n)
{
    const float sum = block_sum(thread_sum(source, n));
    if (threadIdx.x == 0) {
        // In the order in which blocks finish, so the last bits differ from run to run.
        atomicAdd(total, sum);
    }
}
