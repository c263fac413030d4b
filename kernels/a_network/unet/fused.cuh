// A convolution fused with the operations before it: norm, Mish, FiLM, residual.
//
// A block has 8 warps, one per group of the norm, and computes outputs of one sample.
// Lane l of a warp holds kEach channels of its group, from l * kEach on, in registers:
// kEach * kLength floats, which stay there from the norm to the products.
#pragma once
#include "../../common/hopper/dependent.cuh"
#include "../../common/warp.cuh"
#include "activation.cuh"
#include "layers.cuh"

constexpr int kThreads = 32 * kGroups;

// Prefetches into L2 the weights that this block or a neighbouring block will read.
__device__ __forceinline__ void prefetch(const float* from, int floats)
{
    for (int i = threadIdx.x * 32; i < floats; i += kThreads * 32) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(from + i) : "memory");
    }
}

// Lets the next launch start, prefetches weights, which no launch writes, and waits for
// the previous launch, whose results the caller reads next.
__device__ __forceinline__ void prepare(const float* weights, int floats)
{
    if constexpr (kEarly) start_next_launch();
    prefetch(weights, floats);
    if constexpr (kEarly) wait_for_launch_before();
}

// The operations between the previous convolution and this one: offsets of their
// tensors in `activations` or `parameters`; negative if there is no such tensor.
struct Before {
    int sums;  // in activations: the previous convolution's result
    int gamma, beta;  // in parameters; if negative, no norm and no activation
    int film;  // in activations: scales, then shifts
    int residual;  // in activations
    int result;  // in activations: where one block stores the outcome
    int skip;  // in activations: the tensor to concatenate
};

__device__ __forceinline__ float sum_of_lanes(float value)
{
    for (int apart = 16; apart > 0; apart /= 2) {
        value += __shfl_xor_sync(kAllLanes, value, apart);
    }
    return value;
}

// The norm's parameters for a lane's channels, which no launch writes: they can be
// loaded before the previous launch has ended.
template <int kEach>
struct Norm {
    float gamma[kEach], beta[kEach];

    __device__ Norm(const float* parameters, const Before& before, int channel,
                    bool busy)
    {
        if (before.gamma >= 0 && busy) {
            load<kEach>(gamma, parameters + before.gamma + channel);
            load<kEach>(beta, parameters + before.beta + channel);
        }
    }
};

// Computes the rows of a lane's channels from the sums of the previous launch.
template <int kInputs, int kEach, int kLength>
__device__ __forceinline__ void take(float (&x)[kEach][kLength], const Before& before,
                                     const Norm<kEach>& norm, float* activations,
                                     int sample)
{
    const int group = threadIdx.x / 32, lane = threadIdx.x % 32;
    const bool busy = lane < kInputs;
    const int channel = group * kInputs + lane * kEach;
    const int channels = kGroups * kInputs;
    const int at = (sample * channels + channel) * kLength;
    if (busy) load<kEach * kLength>(&x[0][0], activations + before.sums + at);
    if (before.gamma >= 0) {
        constexpr float kCount = kInputs * kLength;
        float sum = 0.0f;
        for (int i = 0; i < kEach * kLength; ++i) sum += (&x[0][0])[i];
        const float mean = sum_of_lanes(sum) / kCount;
        sum = 0.0f;
        for (int i = 0; i < kEach * kLength; ++i) {
            const float off = busy ? (&x[0][0])[i] - mean : 0.0f;
            sum += off * off;
        }
        const float scale = rsqrtf(sum_of_lanes(sum) / kCount + kEpsilon);
        if (busy) {
#pragma unroll
            for (int each = 0; each < kEach; ++each) {
                float factor = 1.0f, shift = 0.0f;
                if (before.film >= 0) {
                    const float* film = activations + before.film +
                                        sample * 2 * channels + channel + each;
                    factor = film[0];
                    shift = film[channels];
                }
#pragma unroll
                for (int p = 0; p < kLength; ++p) {
                    const float normalised = (x[each][p] - mean) * scale;
                    const float y =
                        mish(normalised * norm.gamma[each] + norm.beta[each]);
                    x[each][p] = y * factor + shift;
                }
            }
        }
    }
    if (before.residual >= 0 && busy) {
#pragma unroll
        for (int each = 0; each < kEach; ++each) {
#pragma unroll
            for (int p = 0; p < kLength; ++p) {
                x[each][p] += activations[before.residual + at + each * kLength + p];
            }
        }
    }
    if (before.result >= 0 && blockIdx.x == 0 && busy) {
#pragma unroll
        for (int each = 0; each < kEach; ++each) {
#pragma unroll
            for (int p = 0; p < kLength; ++p) {
                activations[before.result + at + each * kLength + p] = x[each][p];
            }
        }
    }
}

// The bias of the one element that this thread writes, of kRows outputs x kAfter.
template <int kRows, int kAfter>
__device__ __forceinline__ float own_bias(const float* bias, int first)
{
    return threadIdx.x < kRows * kAfter ? bias[first + threadIdx.x / kAfter] : 0.0f;
}

// Writes kRows outputs of a convolution, from output `first` on, to `to`: channels are
// `pitch` floats apart, positions `step` floats.
template <int kKind, int kInputs, int kEach, int kLength, int kSegments, int kRows>
__device__ __forceinline__ void outputs_of(const float (&x)[kSegments][kEach][kLength],
                                           const float* parameters, int weight,
                                           float bias, float* to, int pitch, int step,
                                           int first, int outputs,
                                           float (*parts)[kGroups])
{
    constexpr int kTaps = taps_of(kKind);
    constexpr int kAfter = length_after(kKind, kLength);
    const int group = threadIdx.x / 32, lane = threadIdx.x % 32;
    const bool busy = lane < kInputs;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
        float sum[kAfter] = {};
#pragma unroll
        for (int segment = 0; segment < kSegments; ++segment) {
            const int input = (segment * kGroups + group) * kInputs + lane * kEach;
            const int output = first + row;
            float w[kEach * kTaps] = {};
            if (busy) {
                if constexpr (kKind == kUp) {
#pragma unroll
                    for (int each = 0; each < kEach; ++each) {
                        load<4>(w + each * 4,
                                parameters + weight +
                                    ((input + each) * outputs + output) * 4);
                    }
                } else {
                    constexpr int kAll = kSegments * kGroups * kInputs;
                    load<kEach * kTaps>(
                        w, parameters + weight + (output * kAll + input) * kTaps);
                }
            }
            multiply<kKind>(sum, x[segment], w);
        }
        const float total = fold<kAfter>(sum);
        if (lane % (32 / kAfter) == 0) {
            parts[row * kAfter + lane / (32 / kAfter)][group] = total;
        }
    }
    __syncthreads();  // all groups have stored their parts
    const int i = threadIdx.x;
    if (i < kRows * kAfter) {
        const int output = first + i / kAfter;
        float total = bias;
#pragma unroll
        for (int part = 0; part < kGroups; ++part) total += parts[i][part];
        to[output * pitch + i % kAfter * step] = total;
    }
}
