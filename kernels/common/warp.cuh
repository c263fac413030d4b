// Sums over the lanes of a warp and over the threads of a block.
#pragma once

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

// The sum of the warp's values, in lane 0. All lanes of the warp must call it.
template <typename T>
__device__ __forceinline__ T warp_sum(T value)
{
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
        value += __shfl_down_sync(kAllLanes, value, offset);
    }
    return value;
}

// The sum of the block's values, in thread 0. All threads of the block must call it,
// only once per kernel.
template <int kBlock, typename T>
__device__ __forceinline__ T block_sum(T value)
{
    static_assert(kBlock % kWarp == 0 && kBlock <= kWarp * kWarp,
                  "whole warps, and one warp can add up their sums");
    __shared__ T part[kBlock / kWarp];
    value = warp_sum(value);
    if (threadIdx.x % kWarp == 0) part[threadIdx.x / kWarp] = value;
    __syncthreads();  // all warps have stored their sums before the first one adds them
    if (threadIdx.x < kWarp) {
        value = warp_sum(threadIdx.x < kBlock / kWarp ? part[threadIdx.x] : T{});
    }
    return value;
}
