// B's parts in two passes over B: the largest element of each column, then the split.
#pragma once

#include "prepare.cuh"

template <int kWidth>
__global__ void __launch_bounds__(kPrepareThreads)
column_maxima(const float* __restrict__ B, int ldb, int n, int k,
              unsigned* __restrict__ maxima)
{
    __shared__ unsigned largest[kColumns];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int x = blockIdx.x * kColumns + lane * 4;
    const int first = blockIdx.y * kRowsABlock + warp * kRowsAWarp;
    if (threadIdx.x < kColumns) largest[threadIdx.x] = 0;
    float4 rows[kRowsAWarp];
#pragma unroll
    for (int i = 0; i < kRowsAWarp; ++i) {
        const float* from = B + static_cast<size_t>(first + i) * ldb;
        rows[i] = first + i < k ? read_four<kWidth>(from, x, n) : float4{};
    }
    __syncthreads();
    find_largest(rows, largest);
    __syncthreads();
    const int column = blockIdx.x * kColumns + threadIdx.x;
    if (threadIdx.x < kColumns && column < n) {
        atomicMax(&maxima[column], largest[threadIdx.x]);
    }
}

// Visits blocks in reverse order, and so first reads what the last pass left in L2.
template <int kWidth, bool kPermuted>
__global__ void __launch_bounds__(kPrepareThreads)
split_columns(const float* __restrict__ B, int ldb, int n, int k,
              const unsigned* __restrict__ maxima, int* __restrict__ exponents,
              unsigned short* __restrict__ high, unsigned short* __restrict__ low,
              int pitch)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int x = (gridDim.x - 1 - blockIdx.x) * kColumns + lane * 4;
    const int first =
        (gridDim.y - 1 - blockIdx.y) * kRowsABlock + warp * kRowsAWarp;
    float scales[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const int e = exponent_for(x + j < n ? maxima[x + j] : 0);
        scales[j] = scale_of(e);
        if (first == 0 && x + j < n) exponents[x + j] = e;
    }
#pragma unroll
    for (int i = 0; i < kRowsAWarp; ++i) {
        const int row = first + i;
        if (x >= pitch || row >= (k + 15) / 16 * 16) break;
        const float* from = B + static_cast<size_t>(row) * ldb;
        const float4 v = row < k ? read_four<kWidth>(from, x, n) : float4{};
        put_split(v, scales, high, low, kPermuted ? place_of(row) : row, x, pitch);
    }
}
