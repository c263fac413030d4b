// The norm of a stage, in which each thread owns 8 elements.
#pragma once
#include "fast_mish.cuh"
#include "products.cuh"

// The parameters for a thread's elements: of two channels, or of the same one twice.
struct Norm {
    float gamma[2], beta[2];
    float bias, point_bias;  // for the output that this thread sums
};

__device__ __forceinline__ Norm norm_of(const Program& program, int s,
                                        const Weight* parameters)
{
    Norm norm = {};
    const Stage& stage = program.stage[s];
    const int element = 8 * threadIdx.x;
    if (stage.gamma >= 0 && element < stage.channels * stage.length) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int channel = (element + 4 * half) >> stage.log_length;
            norm.gamma[half] = as_float(parameters[stage.gamma + channel]);
            norm.beta[half] = as_float(parameters[stage.beta + channel]);
        }
    }
    const Convolution& c = stage.convolution;
    const int after = length_after(c.kind, c.length);
    const bool last = s + 1 == program.stages;
    if (threadIdx.x < c.rows * after) {
        const int bias = last ? program.out_bias
                              : program.stage[s + 1].bias + blockIdx.x * c.rows;
        norm.bias = as_float(parameters[bias + threadIdx.x / after]);
    }
    if (stage.point.inputs > 0 && threadIdx.x < c.rows * stage.length) {
        const int bias = program.stage[s + 2].residual_bias + blockIdx.x * c.rows;
        norm.point_bias = as_float(parameters[bias + threadIdx.x / stage.length]);
    }
    return norm;
}

// The mean and reciprocal standard deviation of a group, from 8 values in each of
// `threads` neighbouring threads: means and sums of squared deviations are merged in
// pairs (Chan, Golub, LeVeque 1979).
template <int kWidth>
__device__ __forceinline__ float2 moments(const float (&value)[8], int threads,
                                          float2* of_warps)
{
    float mean = 0.0f, squares = 0.0f, count = 8.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) mean += value[i];
    mean *= 1.0f / 8;
#pragma unroll
    for (int i = 0; i < 8; ++i) squares += (value[i] - mean) * (value[i] - mean);
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
        if (apart < threads) {
            const float other = __shfl_xor_sync(kAllLanes, mean, apart);
            const float more = __shfl_xor_sync(kAllLanes, squares, apart);
            const float off = other - mean;
            squares += more + off * off * (count / 2);
            mean = (mean + other) / 2;
            count *= 2;
        }
    }
    if (threads > 32) {
        const int warp = threadIdx.x / 32;
        if (threadIdx.x % 32 == 0) of_warps[warp] = make_float2(mean, squares);
        asm volatile("bar.sync %0, 64;" ::"r"(2 + warp / 2) : "memory");
        const float2 other = of_warps[warp ^ 1];
        const float off = other.x - mean;
        squares += other.y + off * off * (count / 2);
        mean = (mean + other.x) / 2;
        count *= 2;
    }
    return make_float2(mean, rsqrtf(squares / count + kEpsilon));
}
