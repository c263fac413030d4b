// Powers of two that bring the largest element of a row of A, or of a column of B, to
// [2^14, 2^15): parts of a float then neither overflow nor lose bits that count.
// Scaling is exact, and undoing it rounds a result once. Subnormal numbers are handled
// even with -ftz=true, because PTX in asm does not flush them.
#pragma once

// Stands for the exponent of a row or column that has an infinity or a NaN.
constexpr int kNotFinite = 1 << 20;

__device__ __forceinline__ float multiply_exactly(float x, float y)
{
    float product;
    asm("mul.rn.f32 %0, %1, %2;" : "=f"(product) : "f"(x), "f"(y));
    return product;
}
__device__ __forceinline__ float multiply_add(float x, float y, float z)
{
    float sum;
    asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(sum) : "f"(x), "f"(y), "f"(z));
    return sum;
}
__device__ __forceinline__ float subtract(float x, float y)
{
    float difference;
    asm("sub.rn.f32 %0, %1, %2;" : "=f"(difference) : "f"(x), "f"(y));
    return difference;
}

// Orders floats by magnitude: infinity and NaN are the largest.
__device__ __forceinline__ unsigned magnitude(float x)
{
    return __float_as_uint(x) & 0x7fffffffu;
}

// The exponent for the largest magnitude of a row or column. It is at most 127, so that
// the scale is a float; numbers too small for [2^14, 2^15) are exact in two parts.
__device__ __forceinline__ int exponent_for(unsigned largest)
{
    if (largest >= 0x7f800000u) return kNotFinite;
    return min(14 + 127 - static_cast<int>(largest >> 23), 127);
}

// 2^e for -127 < e < 128, and 0 for -127.
__device__ __forceinline__ float power_of_two(int e)
{
    return __int_as_float((e + 127) << 23);
}
// The scale of a row or column. One that is not finite is not scaled: not_finite
// computes its part of C.
__device__ __forceinline__ float scale_of(int exponent)
{
    return exponent == kNotFinite ? 1.0f : power_of_two(exponent);
}

// x * 2^e for -254 <= e <= 226, where x is 0 or 2^-48 at least. The first product is
// exact, or so small that the second is 0.
__device__ __forceinline__ float times_power_of_two(float x, int e)
{
    const int half = e >> 1;
    return multiply_exactly(multiply_exactly(x, power_of_two(half)),
                            power_of_two(e - half));
}
