// What the rungs share: the sum of a warp's values, and dot products of one or four floats.
constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

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

// The sum of the warp's values, in lane 0. Every lane of the warp must call it.
__device__ __forceinline__ float warp_sum(float value)
{
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
        value += __shfl_down_sync(kAllLanes, value, offset);
    }
    return value;
}
