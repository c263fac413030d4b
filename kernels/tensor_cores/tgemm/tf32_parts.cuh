// Code of all rungs for few rows: aligned copies for the copy engine, and floats as
// sums of two TF32 numbers.
#pragma once

#include "scales.cuh"

// Copies a matrix to rows aligned to 16 bytes, which the copy engine needs.
__global__ void copy_rows(const float* __restrict__ from, int ld, int columns, int rows,
                          float* __restrict__ to, int pitch)
{
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        for (int x = threadIdx.x; x < pitch; x += blockDim.x) {
            to[static_cast<size_t>(row) * pitch + x] =
                x < columns ? from[static_cast<size_t>(row) * ld + x] : 0.0f;
        }
    }
}

// Splits a float into two TF32 numbers. Tensor cores cut off the low 13 bits, so adding
// half of the last kept bit rounds. The NaN 0x7fffffff must not become -0 by that.
struct Parts {
    unsigned high, low;
};
__device__ __forceinline__ Parts split(float x)
{
    const unsigned high = __float_as_uint(x) + 0x1000u;
    const int low = __float_as_int(subtract(x, __uint_as_float(high & 0xffffe000u)));
    const int rounded = static_cast<int>(static_cast<unsigned>(low) + 0x1000u);
    return {high, static_cast<unsigned>(max(rounded, low))};
}

// Tells whether all numbers of the warp are below 2^-95.
template <int kNumbers>
__device__ __forceinline__ bool is_tiny(const float (&values)[kNumbers])
{
    unsigned any = 0;
#pragma unroll
    for (int i = 0; i < kNumbers; ++i) any |= __float_as_uint(values[i]);
    return __all_sync(0xffffffffu, any << 1 < 32u << 24);
}

// Multiplies a warp's numbers by 2^64 if all are tiny, and tells whether it did. Low
// parts of numbers below 2^-113 are subnormal and lose bits, which matters only if
// there are no larger numbers.
constexpr float kUp = 0x1p64f, kDown = 0x1p-64f;
template <int kNumbers>
__device__ __forceinline__ bool raise_tiny(float (&values)[kNumbers])
{
    if (!is_tiny(values)) return false;
#pragma unroll
    for (int i = 0; i < kNumbers; ++i) values[i] = multiply_exactly(values[i], kUp);
    return true;
}
