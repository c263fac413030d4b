// The sum over a block of kThreads threads by shuffles, as in the rung shuffle. The
// file that includes this defines kThreads. The template block_sum of
// kernels/common/warp.cuh would compile to other instructions than those measured.
#pragma once

constexpr int kWarp = 32;
constexpr int kWarps = kThreads / kWarp;
constexpr unsigned kAllLanes = 0xffffffffu;
static_assert(
    kThreads % kWarp == 0 && kWarps <= kWarp,
    "whole warps, and no more than one warp can add up");

// The sum of the warp's values, in lane 0. Every lane of the warp must call it.
__device__ float warp_sum(float value)
{
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
        value += __shfl_down_sync(kAllLanes, value, offset);
    }
    return value;
}

// The sum of the block's values, in thread 0. Every thread of the block must call it; a
// barrier must separate two calls.
__device__ float block_sum(float value)
{
    __shared__ float partial[kWarps];
    const int lane = threadIdx.x % kWarp;
    const int warp = threadIdx.x / kWarp;
    value = warp_sum(value);
    if (lane == 0) {
        partial[warp] = value;
    }
    __syncthreads();  // every warp has stored its result before the first warp reads
    if (warp == 0) {
        value = warp_sum(lane < kWarps ? partial[lane] : 0.0f);
    }
    return value;
}
