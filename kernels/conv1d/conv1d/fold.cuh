// Reduces several sums over a warp at once.
#pragma once
#include "../../common/warp.cuh"

// The number of sums to fold together: a power of two, at most one per lane.
constexpr int fold_of(int sums)
{
    int fold = 1;
    while (fold < sums && fold < kWarp) {
        fold *= 2;
    }
    return fold;
}

// Adds up kFold values over the warp; lane i gets the sum of value i / (kWarp / kFold).
// In each step, a lane keeps half of its values and sends the other half to the lane
// that keeps those: kFold - 1 shuffles, then one per remaining step.
template <int kFold, int kOffset = kWarp / 2>
__device__ float fold(float* value)
{
    if constexpr (kFold > 1) {
        const bool upper = threadIdx.x & kOffset;
#pragma unroll
        for (int i = 0; i < kFold / 2; ++i) {
            const float given = upper ? value[i] : value[i + kFold / 2];
            const float kept = upper ? value[i + kFold / 2] : value[i];
            value[i] = kept + __shfl_xor_sync(kAllLanes, given, kOffset);
        }
        return fold<kFold / 2, kOffset / 2>(value);
    } else {
#pragma unroll
        for (int offset = kOffset; offset > 0; offset /= 2) {
            value[0] += __shfl_xor_sync(kAllLanes, value[0], offset);
        }
        return value[0];
    }
}
