// A's parts: for each 32 of k, 32 high parts and then 32 low ones, which are one row of
// a box for the copy engine.
#pragma once

#include "prepare.cuh"

// A block a row, which it keeps in registers up to a length of 4096. Parts are zero
// beyond k. Sets `zeros` words to zero, where the next launches count and compare.
template <int kWidth>
__global__ void __launch_bounds__(kPrepareThreads)
split_rows(const float* __restrict__ A, int lda, int k, int* __restrict__ exponents,
           unsigned* __restrict__ zeroed, int zeros, unsigned short* __restrict__ parts,
           int pitch)
{
    constexpr int kKept = 4;
    __shared__ unsigned largest;
    start_next_launch();
    const int thread = threadIdx.x, row = blockIdx.x, depth = pitch / 2;
    for (int i = row * kPrepareThreads + thread; i < zeros;
         i += gridDim.x * kPrepareThreads) {
        zeroed[i] = 0;
    }
    if (thread == 0) largest = 0;
    const float* from = A + static_cast<size_t>(row) * lda;
    float4 kept[kKept];
    unsigned most = 0;
#pragma unroll
    for (int i = 0; i < kKept; ++i) {
        kept[i] = read_four<kWidth>(from, (i * kPrepareThreads + thread) * 4, k);
    }
#pragma unroll
    for (int i = 0; i < kKept; ++i) most = largest_of(most, kept[i]);
    const int rest = (kKept * kPrepareThreads + thread) * 4;
    for (int at = rest; at < k; at += kPrepareThreads * 4) {
        most = largest_of(most, read_four<kWidth>(from, at, k));
    }
    most = __reduce_max_sync(0xffffffffu, most);
    __syncthreads();
    if (thread % 32 == 0) atomicMax(&largest, most);
    __syncthreads();
    const int exponent = exponent_for(largest);
    if (thread == 0) exponents[row] = exponent;
    const float scale = scale_of(exponent), scales[4] = {scale, scale, scale, scale};
    unsigned short* to = parts + static_cast<size_t>(row) * pitch;
    const auto put = [&](float4 v, int at) {
        unsigned short* slice = to + at / 32 * 64;
        put_split(v, scales, slice, slice + 32, 0, at % 32, 0);
    };
#pragma unroll
    for (int i = 0; i < kKept; ++i) {
        const int at = (i * kPrepareThreads + thread) * 4;
        if (at < depth) put(kept[i], at);
    }
    for (int at = rest; at < depth; at += kPrepareThreads * 4) {
        put(read_four<kWidth>(from, at, k), at);
    }
}
