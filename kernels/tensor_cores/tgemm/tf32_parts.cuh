// What rungs for few rows share: copies for the copy engine, and the parts of floats,
// which are TF32 numbers.
#pragma once

#include "scales.cuh"

// A matrix with rows at multiples of 16 bytes, for the copy engine.
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

// A float as two TF32 numbers: tensor cores cut off the low 13 bits of what they get,
// so half of that is added. A NaN, 0x7fffffff, must not become -0 there.
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

// Whether all numbers of the warp are below 2^-95. Then they are multiplied by 2^64:
// low parts of numbers below 2^-113 are subnormal and lose bits, which does not matter
// beside larger numbers.
constexpr float kUp = 0x1p64f, kDown = 0x1p-64f;
template <int kNumbers>
__device__ __forceinline__ bool raise_tiny(float (&values)[kNumbers])
{
    unsigned any = 0;
#pragma unroll
    for (int i = 0; i < kNumbers; ++i) any |= __float_as_uint(values[i]);
    if (!__all_sync(0xffffffffu, any << 1 < 32u << 24)) return false;
#pragma unroll
    for (int i = 0; i < kNumbers; ++i) values[i] = multiply_exactly(values[i], kUp);
    return true;
}
