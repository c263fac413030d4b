// The second pass of the rungs that split the inputs: one thread per output adds up its
// pieces, always in the same order.
#pragma once

template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    add_pieces(const float* __restrict__ sums, float* __restrict__ output, size_t n,
               int pieces)
{
    const size_t at = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (at >= n) return;
    float sum = 0.0f;
    for (int piece = 0; piece < pieces; ++piece) {
        sum += sums[piece * n + at];
    }
    output[at] = sum;
}
