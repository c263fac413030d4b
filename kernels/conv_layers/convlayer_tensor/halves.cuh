// Floats as sums of two halves. The second is the remainder of the first, times 2^11,
// so that it keeps its bits even if the first is as small as a half can be. For floats
// from 2^-14 to 65504 the sum has 22 bits.
#pragma once

constexpr float kLowScale = 2048.0f;

// Two floats rounded to halves; the first is in the lower 16 bits.
__device__ __forceinline__ unsigned pack_halves(float first, float second)
{
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

__device__ __forceinline__ float2 unpack_halves(unsigned pair)
{
    float2 values;
    asm("{\n"
        ".reg .b16 first, second;\n"
        "mov.b32 {first, second}, %2;\n"
        "cvt.f32.f16 %0, first;\n"
        "cvt.f32.f16 %1, second;\n"
        "}"
        : "=f"(values.x), "=f"(values.y)
        : "r"(pair));
    return values;
}

// Puts two floats as halves into parts[0], and their remainders into parts[1], if any.
template <int kParts>
__device__ __forceinline__ void split_pair(unsigned (&parts)[kParts], float first,
                                           float second)
{
    parts[0] = pack_halves(first, second);
    if constexpr (kParts == 2) {
        const float2 high = unpack_halves(parts[0]);
        parts[1] = pack_halves((first - high.x) * kLowScale,
                               (second - high.y) * kLowScale);
    }
}
