// The preparation for the fused product: an exponent for each row of A, and B as two
// matrices of halves.
#pragma once

#include "../../common/hopper/dependent.cuh"
#include "scales.cuh"

constexpr int kPrepareThreads = 256, kPrepareWarps = kPrepareThreads / 32;
constexpr int kColumns = 128;  // columns that a warp reads at a time
constexpr int kRowsAWarp = 8, kRowsABlock = kRowsAWarp * kPrepareWarps;

// Splits x and y into a high and a low half each.
__device__ __forceinline__ void split_pair(
    float x, float y, unsigned& high, unsigned& low)
{
    asm("{\n"
        ".reg .b16 p, q;\n"
        ".reg .f32 f, g;\n"
        "cvt.rn.f16x2.f32 %0, %3, %2;\n"
        "mov.b32 {p, q}, %0;\n"
        "cvt.f32.f16 f, p;\n"
        "cvt.f32.f16 g, q;\n"
        "sub.rn.f32 f, %2, f;\n"
        "sub.rn.f32 g, %3, g;\n"
        "cvt.rn.f16x2.f32 %1, g, f;\n"
        "}"
        : "=&r"(high), "=r"(low)
        : "f"(x), "f"(y));
}

// Reads four floats of a row, zeros from `end` on. With kWidth = 4, all or none of them
// lie before `end`, and they are aligned to 16 bytes.
template <int kWidth>
__device__ __forceinline__ float4 read_four(const float* row, int at, int end)
{
    if constexpr (kWidth == 4) {
        return at < end ? *reinterpret_cast<const float4*>(row + at) : float4{};
    } else {
        return make_float4(at < end ? row[at] : 0.0f, at + 1 < end ? row[at + 1] : 0.0f,
                           at + 2 < end ? row[at + 2] : 0.0f,
                           at + 3 < end ? row[at + 3] : 0.0f);
    }
}
__device__ __forceinline__ unsigned largest_of(unsigned most, float4 v)
{
    return max(max(max(most, magnitude(v.x)), magnitude(v.y)),
               max(magnitude(v.z), magnitude(v.w)));
}

// Finds the exponents of A's rows, a warp per row. Clears `zeros` words, for maxima of
// the next launch. With kWidth = 1 it also copies A, to rows aligned to 16 bytes.
template <int kWidth>
__global__ void __launch_bounds__(kPrepareThreads)
row_exponents(const float* __restrict__ A, int lda, int m, int k,
              int* __restrict__ exponents, unsigned* __restrict__ zeroed, int zeros,
              float* copy, int pitch)
{
    start_next_launch();
    const int thread = blockIdx.x * kPrepareThreads + threadIdx.x;
    for (int i = thread; i < zeros; i += gridDim.x * kPrepareThreads) zeroed[i] = 0;
    const int row = thread / 32, lane = threadIdx.x % 32;
    if (row >= m) return;
    const float* from = A + static_cast<size_t>(row) * lda;
    unsigned most = 0;
    if constexpr (kWidth == 4) {
#pragma unroll 8
        for (int i = lane * 4; i < k; i += 128) {
            most = largest_of(most, read_four<4>(from, i, k));
        }
    } else {
        for (int i = lane * 4; i < pitch; i += 128) {
            const float4 v = read_four<1>(from, i, k);
            most = largest_of(most, v);
            float* to = copy + static_cast<size_t>(row) * pitch + i;
            *reinterpret_cast<float4*>(to) = v;
        }
    }
    most = __reduce_max_sync(0xffffffffu, most);
    if (lane == 0) exponents[row] = exponent_for(most);
}

// The place of row k of B among 16 rows of the split matrices. With this order, a lane
// can read four neighbouring floats of A, where the instruction would otherwise need
// two pairs that are eight apart.
__device__ __forceinline__ int place_of(int k)
{
    return k / 16 * 16 + k % 4 / 2 * 8 + k % 16 / 4 * 2 + k % 2;
}

// Splits four neighbours of a row of B, and puts them in row `row` of the parts.
__device__ __forceinline__ void put_split(
    float4 v, const float (&scales)[4], unsigned short* high, unsigned short* low,
    int row, int column, int pitch)
{
    uint2 h, l;
    split_pair(multiply_exactly(v.x, scales[0]), multiply_exactly(v.y, scales[1]), h.x,
               l.x);
    split_pair(multiply_exactly(v.z, scales[2]), multiply_exactly(v.w, scales[3]), h.y,
               l.y);
    const size_t at = static_cast<size_t>(row) * pitch + column;
    *reinterpret_cast<uint2*>(high + at) = h;
    *reinterpret_cast<uint2*>(low + at) = l;
}

// Finds the largest magnitude in each column of a block's rows; a thread has
// `kRows` rows of four columns. `largest` is zero before.
template <int kRows>
__device__ __forceinline__ void find_largest(
    const float4 (&rows)[kRows], unsigned (&largest)[kColumns])
{
    unsigned most[4] = {};
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
        most[0] = max(most[0], magnitude(rows[i].x));
        most[1] = max(most[1], magnitude(rows[i].y));
        most[2] = max(most[2], magnitude(rows[i].z));
        most[3] = max(most[3], magnitude(rows[i].w));
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        atomicMax(&largest[threadIdx.x % 32 * 4 + j], most[j]);
    }
}
