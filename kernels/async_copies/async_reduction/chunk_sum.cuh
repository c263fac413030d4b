// The sum of a block's chunk, as in the rungs of the ladder reduction: a thread has
// kUnroll 16-byte loads in flight before it adds anything.
#pragma once
#include "../../common/hopper/dependent.cuh"

constexpr int kThreads = 1024;
constexpr int kUnroll = 8;
constexpr int kChunk = kThreads * kUnroll * 4;
#include "../../warp_shuffles/reduction/block_sum.cuh"

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

// Adds up the blocks' sums: a launch of one block, which may start before the blocks
// that write the sums have ended.
__global__ void __launch_bounds__(kThreads)
    sum_of_sums(const float* sums, float* __restrict__ total, int count)
{
    wait_for_launch_before();
    float sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += kThreads) {
        sum += sums[i];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        *total = sum;
    }
}
