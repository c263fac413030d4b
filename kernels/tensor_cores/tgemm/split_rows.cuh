// A's parts: for each 32 of k, 32 high parts and then 32 low ones, which are one row of
// a box for the copy engine.
#pragma once

#include "prepare.cuh"

// Splits a row of A with `kThreads` threads, numbered by `thread`, which keep up to
// 4 * kThreads * kKept elements in registers. Parts are zero beyond k. All threads of a
// block must call it, also for rows beyond A. `largest` is the row's, and zero before.
template <int kWidth, int kThreads, int kKept>
__device__ __forceinline__ void split_row(
    const float* __restrict__ A, int lda, int m, int k, int* __restrict__ exponents,
    unsigned short* __restrict__ parts, int pitch, int row, int thread,
    unsigned& largest)
{
    const int depth = row < m ? pitch / 2 : 0, length = row < m ? k : 0;
    const float* from = A + static_cast<size_t>(row) * lda;
    float4 kept[kKept];
    unsigned most = 0;
#pragma unroll
    for (int i = 0; i < kKept; ++i) {
        kept[i] = read_four<kWidth>(from, (i * kThreads + thread) * 4, length);
    }
#pragma unroll
    for (int i = 0; i < kKept; ++i) most = largest_of(most, kept[i]);
    const int rest = (kKept * kThreads + thread) * 4;
    for (int at = rest; at < length; at += kThreads * 4) {
        most = largest_of(most, read_four<kWidth>(from, at, length));
    }
    most = __reduce_max_sync(0xffffffffu, most);
    __syncthreads();
    if (thread % 32 == 0) atomicMax(&largest, most);
    __syncthreads();
    const int exponent = exponent_for(largest);
    if (thread == 0 && row < m) exponents[row] = exponent;
    const float scale = scale_of(exponent), scales[4] = {scale, scale, scale, scale};
    unsigned short* to = parts + static_cast<size_t>(row) * pitch;
    const auto put = [&](float4 v, int at) {
        unsigned short* slice = to + at / 32 * 64;
        put_split(v, scales, slice, slice + 32, 0, at % 32, 0);
    };
#pragma unroll
    for (int i = 0; i < kKept; ++i) {
        const int at = (i * kThreads + thread) * 4;
        if (at < depth) put(kept[i], at);
    }
    for (int at = rest; at < depth; at += kThreads * 4) {
        put(read_four<kWidth>(from, at, length), at);
    }
}

// Splits a row per block. Clears `zeros` words: counters and maxima of later launches.
template <int kWidth>
__global__ void __launch_bounds__(kPrepareThreads)
split_rows(const float* __restrict__ A, int lda, int k, int* __restrict__ exponents,
           unsigned* __restrict__ zeroed, int zeros, unsigned short* __restrict__ parts,
           int pitch)
{
    __shared__ unsigned largest;
    start_next_launch();
    const int thread = threadIdx.x, row = blockIdx.x;
    for (int i = row * kPrepareThreads + thread; i < zeros;
         i += gridDim.x * kPrepareThreads) {
        zeroed[i] = 0;
    }
    if (thread == 0) largest = 0;
    split_row<kWidth, kPrepareThreads, 4>(A, lda, gridDim.x, k, exponents, parts, pitch,
                                          row, thread, largest);
}
