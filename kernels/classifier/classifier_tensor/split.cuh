// A float as the sum of two TF32 numbers, to 20 bits: tensor cores read the upper 19
// bits of a float, so the float itself is the first, and what it loses by that, exact
// in float32, is the second.
#pragma once

__device__ __forceinline__ float low_part(float value)
{
    return value - __uint_as_float(__float_as_uint(value) & 0xffffe000u);
}
