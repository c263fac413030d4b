// Both factors in one launch without blocks that wait: a block has whole columns of B.
#pragma once

#include "split_rows.cuh"

constexpr int kSplitThreads = 512, kRowThreads = 64;
constexpr int kRowsOfBlock = kSplitThreads / kRowThreads;
constexpr int kStrip = 16;  // columns of a block: 64 bytes of each row
constexpr int kRowsAtOnce = kSplitThreads / (kStrip / 4);

// Splits a strip of B, which stays in registers up to a length of kRowsAtOnce * kKept.
template <int kWidth, int kKept>
__device__ __forceinline__ void split_strip(
    int strip, const float* __restrict__ B, int ldb, int n, int k,
    int* __restrict__ exponents, unsigned short* __restrict__ high,
    unsigned short* __restrict__ low, int pitch, unsigned (&largest)[kStrip])
{
    const int thread = threadIdx.x, lane = thread % 32;
    const int first = strip * kStrip, own = thread % (kStrip / 4) * 4;
    const int start = thread / (kStrip / 4);
    const int rows = (k + 15) / 16 * 16;
    const auto read = [&](int row) {
        return read_four<kWidth>(B + static_cast<size_t>(row) * ldb, first + own,
                                 row < k ? n : 0);
    };
    float4 kept[kKept];
    unsigned most[4] = {};
    const auto look = [&](float4 v) {
        most[0] = max(most[0], magnitude(v.x));
        most[1] = max(most[1], magnitude(v.y));
        most[2] = max(most[2], magnitude(v.z));
        most[3] = max(most[3], magnitude(v.w));
    };
#pragma unroll
    for (int i = 0; i < kKept; ++i) kept[i] = read(start + i * kRowsAtOnce);
    if (thread < kStrip) largest[thread] = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kKept; ++i) look(kept[i]);
    for (int row = start + kKept * kRowsAtOnce; row < k; row += kRowsAtOnce) {
        look(read(row));
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int apart = 16; apart >= kStrip / 4; apart /= 2) {
            most[j] = max(most[j], __shfl_xor_sync(0xffffffffu, most[j], apart));
        }
        if (lane < kStrip / 4) atomicMax(&largest[own + j], most[j]);
    }
    __syncthreads();
    if (thread < kStrip && first + thread < n) {
        exponents[first + thread] = exponent_for(largest[thread]);
    }
    if (first + own >= pitch) return;
    float scales[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) scales[j] = scale_of(exponent_for(largest[own + j]));
#pragma unroll
    for (int i = 0; i < kKept; ++i) {
        const int row = start + i * kRowsAtOnce;
        if (row < rows) put_split(kept[i], scales, high, low, row, first + own, pitch);
    }
    for (int row = start + kKept * kRowsAtOnce; row < rows; row += kRowsAtOnce) {
        put_split(read(row), scales, high, low, row, first + own, pitch);
    }
}

// The first `strips` blocks are for B, the others for A.
template <int kWidth>
__global__ void __launch_bounds__(kSplitThreads, 2)
prepare_alone(const float* __restrict__ A, int lda, int m, int k,
              int* __restrict__ row_exponents, unsigned short* __restrict__ a_parts,
              int a_pitch, int strips, const float* __restrict__ B, int ldb, int n,
              int* __restrict__ column_exponents, unsigned short* __restrict__ high,
              unsigned short* __restrict__ low, int pitch)
{
    __shared__ unsigned largest[kStrip];
    start_next_launch();
    const int block = blockIdx.x;
    if (block < strips) {
        split_strip<kWidth, 8>(block, B, ldb, n, k, column_exponents, high, low, pitch,
                               largest);
    } else {
        const int place = threadIdx.x / kRowThreads, thread = threadIdx.x % kRowThreads;
        if (thread == 0) largest[place] = 0;
        split_row<kWidth, kRowThreads, 4>(A, lda, m, k, row_exponents, a_parts, a_pitch,
                                          (block - strips) * kRowsOfBlock + place,
                                          thread, largest[place]);
    }
}
