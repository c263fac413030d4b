// The second pass if the input maps are split over blocks.
#pragma once

constexpr int kAddThreads = 128;

// output[i] = parts[0][i] + parts[1][i] + ..., for kWidth elements per thread.
template <int kWidth>
__global__ void __launch_bounds__(kAddThreads)
    convlayer_add_parts(const float* __restrict__ parts, float* __restrict__ output,
                        size_t count, int number)
{
    const size_t at =
        (static_cast<size_t>(blockIdx.x) * kAddThreads + threadIdx.x) * kWidth;
    if (at >= count) return;
    float sum[kWidth] = {};
#pragma unroll 8
    for (int part = 0; part < number; ++part) {
        const float* from = parts + part * count + at;
        if constexpr (kWidth == 4) {
            const float4 quad = *reinterpret_cast<const float4*>(from);
            sum[0] += quad.x;
            sum[1] += quad.y;
            sum[2] += quad.z;
            sum[3] += quad.w;
        } else {
            sum[0] += *from;
        }
    }
    if constexpr (kWidth == 4) {
        *reinterpret_cast<float4*>(output + at) = {sum[0], sum[1], sum[2], sum[3]};
    } else {
        output[at] = sum[0];
    }
}
