// B's parts in one pass: blocks keep their rows of B in registers until all blocks of
// the same columns know the largest elements.
#pragma once

#include "meet.cuh"
#include "prepare.cuh"

constexpr int kSplitThreads = 512, kRowsOfSplit = kSplitThreads / 32 * kRowsAWarp;

// Splits the rows of B that belong to block `number`, with `height` blocks along k. The
// blocks of a strip of columns have consecutive numbers, so that they run at the same
// time. `maxima`, and behind it a counter for each strip, are 0 once the previous
// launch has ended.
template <int kWidth, bool kPermuted>
__device__ __forceinline__ void split_block(
    int number, const float* __restrict__ B, int ldb, int n, int k, int height,
    unsigned* maxima, int* __restrict__ exponents, unsigned short* __restrict__ high,
    unsigned short* __restrict__ low, int pitch)
{
    __shared__ unsigned largest[kColumns];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int strip = number / height, block = number % height;
    const int x = strip * kColumns + lane * 4;
    const int first = block * kRowsOfSplit + warp * kRowsAWarp;
    if (thread < kColumns) largest[thread] = 0;
    float4 rows[kRowsAWarp];
#pragma unroll
    for (int i = 0; i < kRowsAWarp; ++i) {
        const float* from = B + static_cast<size_t>(first + i) * ldb;
        rows[i] = first + i < k ? read_four<kWidth>(from, x, n) : float4{};
    }
    __syncthreads();
    find_largest(rows, largest);
    __syncthreads();
    wait_for_launch_before();  // which sets maxima and counters to zero
    const int column = strip * kColumns + thread;
    if (thread < kColumns && column < n) atomicMax(&maxima[column], largest[thread]);
    __syncthreads();
    if (thread == 0) meet(maxima + n + strip, height);
    __syncthreads();
    float scales[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const int e = exponent_for(x + j < n ? __ldcg(&maxima[x + j]) : 0);
        scales[j] = scale_of(e);
        if (first == 0 && x + j < n) exponents[x + j] = e;
    }
#pragma unroll
    for (int i = 0; i < kRowsAWarp; ++i) {
        const int row = first + i;
        if (x < pitch && row < (k + 15) / 16 * 16) {
            put_split(rows[i], scales, high, low, kPermuted ? place_of(row) : row, x,
                      pitch);
        }
    }
}

template <int kWidth, bool kPermuted>
__global__ void __launch_bounds__(kSplitThreads, 2)
split_once(const float* __restrict__ B, int ldb, int n, int k, int height,
           unsigned* maxima, int* __restrict__ exponents,
           unsigned short* __restrict__ high, unsigned short* __restrict__ low,
           int pitch)
{
    start_next_launch();
    split_block<kWidth, kPermuted>(blockIdx.x, B, ldb, n, k, height, maxima, exponents,
                                   high, low, pitch);
}
