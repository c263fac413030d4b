// Prepares both factors in one launch: blocks for A lie between those for B, so that
// memory stays busy while blocks for B wait for each other.
#pragma once

#include "one_pass.cuh"
#include "split_rows.cuh"

constexpr int kRowThreads = 128, kRowsOfBlock = kSplitThreads / kRowThreads;

__global__ void __launch_bounds__(kPrepareThreads)
zero_words(unsigned* __restrict__ words, int count)
{
    start_next_launch();
    const int i = blockIdx.x * kPrepareThreads + threadIdx.x;
    if (i < count) words[i] = 0;
}

// `of_a` of the blocks are for A, evenly distributed among the others.
template <int kWidth>
__global__ void __launch_bounds__(kSplitThreads, 2)
prepare_both(const float* __restrict__ A, int lda, int m, int k,
             int* __restrict__ row_exponents, unsigned short* __restrict__ a_parts,
             int a_pitch, int of_a, const float* __restrict__ B, int ldb, int n,
             int height, unsigned* maxima, int* __restrict__ column_exponents,
             unsigned short* __restrict__ high, unsigned short* __restrict__ low,
             int pitch)
{
    __shared__ unsigned largest[kRowsOfBlock];
    start_next_launch();
    const long long share = of_a;
    const int before = blockIdx.x * share / gridDim.x;
    if ((blockIdx.x + 1) * share / gridDim.x > before) {
        const int place = threadIdx.x / kRowThreads, thread = threadIdx.x % kRowThreads;
        if (thread == 0) largest[place] = 0;
        split_row<kWidth, kRowThreads, 8>(A, lda, m, k, row_exponents, a_parts, a_pitch,
                                          before * kRowsOfBlock + place, thread,
                                          largest[place]);
        // The next launch assumes that all earlier launches have ended.
        wait_for_launch_before();
    } else {
        split_block<kWidth, false>(blockIdx.x - before, B, ldb, n, k, height, maxima,
                                   column_exponents, high, low, pitch);
    }
}
