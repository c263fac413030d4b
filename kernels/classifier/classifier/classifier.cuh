// What the rungs share: loads of one or four floats, their dot products, the sums of a warp and of a block.
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

// The sum of the block's values, in thread 0. Every thread of the block must call it, once in a kernel.
template <int kBlock>
__device__ __forceinline__ float block_sum(float value)
{
    static_assert(kBlock % kWarp == 0 && kBlock <= kWarp * kWarp, "whole warps, and one warp can add up their sums");
    __shared__ float part[kBlock / kWarp];
    value = warp_sum(value);
    if (threadIdx.x % kWarp == 0) part[threadIdx.x / kWarp] = value;
    __syncthreads();  // every warp has left its sum before the first warp adds them up
    if (threadIdx.x < kWarp) {
        value = warp_sum(threadIdx.x < kBlock / kWarp ? part[threadIdx.x] : 0.0f);
    }
    return value;
}
