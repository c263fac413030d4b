// What the rungs share: loads of one or four floats, their dot products, the sums of a warp and of a block.
#pragma once

// What one load brings: kWidth neighbouring floats.
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
