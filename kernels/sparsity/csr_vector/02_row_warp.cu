// Idea: one warp adds up each row, so that its loads are coalesced.
// From the rung before: a warp per row, and a sum over its lanes at the end.
// Requires: blocks of kThreads threads.
#include "../../common/warp.cuh"

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
    csr_row_warp(const int* __restrict__ offsets, const int* __restrict__ columns,
                 const float* __restrict__ values, const float* __restrict__ x,
                 float* __restrict__ y, int m)
{
    const int row = blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp;
    const int lane = threadIdx.x % kWarp;
    if (row >= m) return;
    float sum = 0.0f;
    for (int i = offsets[row] + lane; i < offsets[row + 1]; i += kWarp)
        sum += values[i] * x[columns[i]];
    sum = warp_sum(sum);
    if (lane == 0) y[row] = sum;
}
