// The second pass of classifiers that cut the inputs into pieces.
#pragma once

#include "../common/hopper/dependent.cuh"

// Adds up the pieces of an output, a thread each, always in the same order.
template <int kBlock>
__global__ void __launch_bounds__(kBlock)
    add_pieces_late(const float* sums, float* __restrict__ output, size_t n, int pieces)
{
    wait_for_launch_before();
    const size_t at = static_cast<size_t>(blockIdx.x) * kBlock + threadIdx.x;
    if (at >= n) return;
    float sum = 0.0f;
#pragma unroll 8
    for (int piece = 0; piece < pieces; ++piece) sum += sums[piece * n + at];
    output[at] = sum;
}
