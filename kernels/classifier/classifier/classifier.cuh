// Shared by the rungs: packs of one or four floats, and their dot products.
#pragma once

// kWidth neighbouring floats, loaded by one instruction.
template <int kWidth>
struct Pack;
template <>
struct Pack<1> {
    using type = float;
};
template <>
struct Pack<4> {
    using type = float4;
};

__device__ __forceinline__ float multiply_add(float weight, float value, float sum)
{
    return fmaf(weight, value, sum);
}

__device__ __forceinline__ float multiply_add(float4 weight, float4 value, float sum)
{
    sum = fmaf(weight.x, value.x, sum);
    sum = fmaf(weight.y, value.y, sum);
    sum = fmaf(weight.z, value.z, sum);
    return fmaf(weight.w, value.w, sum);
}
