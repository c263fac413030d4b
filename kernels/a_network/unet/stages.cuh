// The kernels of the network, one per convolution. kEarly: launches may start early
// (programmatic dependent launch).
#pragma once
#include "fused.cuh"

// The block's 8 outputs of a linear layer, one per warp; the input is in shared memory.
__device__ __forceinline__ void linear(const float* weight, const float* bias,
                                       const float* input, float* to, int inputs,
                                       int first)
{
    const int output = first + threadIdx.x / 32;
    float sum = 0.0f;
    for (int i = threadIdx.x % 32; i < inputs; i += 32) {
        sum += weight[output * inputs + i] * input[i];
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) to[output] = sum + bias[output];
}

// The time step's first linear layer. Grid: outputs / 8, samples.
template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    unet_step(const float* __restrict__ parameters, const int* __restrict__ timestep,
              float* __restrict__ activations, int weight, int bias, int to)
{
    __shared__ float input[kWidth];
    if (kEarly) start_next_launch();
    for (int i = threadIdx.x; i < kWidth; i += kThreads) {
        input[i] = embedding<kWidth>(timestep[blockIdx.y], i);
    }
    __syncthreads();  // the embedding is complete
    linear(parameters + weight, parameters + bias, input,
           activations + to + blockIdx.y * 4 * kWidth, kWidth, blockIdx.x * kGroups);
}

// The time step's second linear layer. Grid: outputs / 8, samples.
template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    unet_embedded(const float* __restrict__ parameters, float* activations, int from,
                  int weight, int bias, int to)
{
    __shared__ float input[4 * kWidth];
    constexpr int kShare = 4 * kWidth * kGroups;
    prepare(parameters + weight + blockIdx.x * kShare, kShare);
    for (int i = threadIdx.x; i < 4 * kWidth; i += kThreads) {
        input[i] = mish(activations[from + blockIdx.y * 4 * kWidth + i]);
    }
    __syncthreads();  // the input is complete
    linear(parameters + weight, parameters + bias, input,
           activations + to + blockIdx.y * kWidth, 4 * kWidth, blockIdx.x * kGroups);
}

// Loads what the previous launch wrote. If that launch may have been running when this
// one started, the compiler must not use ld.global.nc: see wait_for_launch_before.
__device__ __forceinline__ float load_made(const float& from)
{
    if constexpr (kEarly) {
        float made;
        asm volatile("ld.global.f32 %0, [%1];" : "=f"(made) : "l"(&from) : "memory");
        return made;
    } else {
        return from;
    }
}

// FiLM scales and shifts of a block of the network: kFilms per thread block, 8 per
// warp.
constexpr int kFilms = 64;
template <int kWidth>
__device__ __forceinline__ void film_of(const float* parameters, float* activations,
                                        const float* observation, int embedded,
                                        int weight, int bias, int to, int channels,
                                        int block)
{
    constexpr int kInputs = kWidth + kObservation;
    __shared__ float input[kInputs];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first = block * kFilms + warp * 8;
    const float added = parameters[bias + first + lane / 4];
    prepare(parameters + weight + block * kFilms * kInputs, kFilms * kInputs);
    for (int i = threadIdx.x; i < kInputs; i += kThreads) {
        input[i] =
            mish(i < kWidth ? load_made(activations[embedded + blockIdx.y * kWidth + i])
                            : observation[blockIdx.y * kObservation + i - kWidth]);
    }
    __syncthreads();  // the input is complete
    float sum[8] = {};
    for (int i = lane; i < kInputs; i += 32) {
#pragma unroll
        for (int row = 0; row < 8; ++row) {
            sum[row] += parameters[weight + (first + row) * kInputs + i] * input[i];
        }
    }
    const float total = fold<8>(sum);
    if (lane % 4 == 0) {
        activations[to + blockIdx.y * 2 * channels + first + lane / 4] = total + added;
    }
}

// The first convolution, which has two inputs, and its residual's 1-tap convolution,
// one output per thread; and FiLM values. Grid: kWidth / 16 + kWidth / 32,
// samples.
template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    unet_first(const float* __restrict__ parameters, const float* __restrict__ input,
               const float* __restrict__ observation, float* activations, int weight,
               int bias, int to, int point, int point_bias, int point_to, int embedded,
               int film_weight, int film_bias, int film_to)
{
    constexpr int kConvolving = kWidth / 16;
    if (blockIdx.x >= kConvolving) {
        film_of<kWidth>(parameters, activations, observation, embedded, film_weight,
                        film_bias, film_to, kWidth, blockIdx.x - kConvolving);
        return;
    }
    prepare(parameters + weight, 0);
    const int channel = blockIdx.x * 16 + threadIdx.x / kSteps;
    const int position = threadIdx.x % kSteps;
    const float* row = input + blockIdx.y * kSteps * kAction;
    float sum = parameters[bias + channel], around = parameters[point_bias + channel];
#pragma unroll
    for (int i = 0; i < kAction; ++i) {
#pragma unroll
        for (int t = 0; t < 5; ++t) {
            const int p = position + t - 2;
            if (p >= 0 && p < kSteps) {
                sum += parameters[weight + (channel * kAction + i) * 5 + t] *
                       row[p * kAction + i];
            }
        }
        around +=
            parameters[point + channel * kAction + i] * row[position * kAction + i];
    }
    const int at = (blockIdx.y * kWidth + channel) * kSteps + position;
    activations[to + at] = sum;
    activations[point_to + at] = around;
}

// A convolution, the residual's 1-tap convolution if `point` is not negative, and FiLM
// values if `film_weight` is not. Grid: outputs / kRows, plus outputs / 32 for FiLM
// values; samples.
template <int kWidth, int kKind, int kChannels, int kLength, int kSegments, int kRows>
__global__ void __launch_bounds__(kThreads, 2)
    unet_stage(const float* __restrict__ parameters,
               const float* __restrict__ observation, float* activations, int sums,
               int gamma, int beta, int film, int residual, int result, int skip,
               int outputs, int weight, int bias, int to, int point, int point_bias,
               int point_to, int embedded, int film_weight, int film_bias, int film_to)
{
    constexpr int kInputs = kChannels / kGroups;
    constexpr int kEach = kInputs > 32 ? kInputs / 32 : 1;
    constexpr int kAfter = length_after(kKind, kLength);
    constexpr int kShare = kRows * kSegments * kChannels;
    __shared__ float parts[2][kRows * (kAfter > kLength ? kAfter : kLength)][kGroups];
    const int blocks = outputs / kRows, sample = blockIdx.y;
    if (blockIdx.x >= blocks) {
        film_of<kWidth>(parameters, activations, observation, embedded, film_weight,
                        film_bias, film_to, outputs, blockIdx.x - blocks);
        return;
    }
    const Before before = {sums, gamma, beta, film, residual, result, skip};
    const int first = blockIdx.x * kRows, lane = threadIdx.x % 32;
    const int channel = threadIdx.x / 32 * kInputs + lane * kEach;
    const Norm<kEach> norm(parameters, before, channel, lane < kInputs);
    const float added = own_bias<kRows, kAfter>(parameters + bias, first);
    float point_added = 0.0f;
    if (point >= 0) {
        point_added = own_bias<kRows, kLength>(parameters + point_bias, first);
        prefetch(parameters + point + blockIdx.x * kShare, kShare);
    }
    prepare(parameters + weight + blockIdx.x * kShare * taps_of(kKind),
            kShare * taps_of(kKind));
    float x[kSegments][kEach][kLength] = {};
    take<kInputs>(x[0], before, norm, activations, sample);
    if constexpr (kSegments == 2) {
        if (lane < kInputs) {
            load<kEach * kLength>(
                &x[1][0][0],
                activations + skip + (sample * kChannels + channel) * kLength);
        }
    }
    outputs_of<kKind, kInputs, kEach, kLength, kSegments, kRows>(
        x, parameters, weight, added, activations + to + sample * outputs * kAfter,
        kAfter, 1, first, outputs, parts[0]);
    if (point >= 0) {
        outputs_of<kPoint, kInputs, kEach, kLength, kSegments, kRows>(
            x, parameters, point, point_added,
            activations + point_to + sample * outputs * kLength, kLength, 1, first,
            outputs, parts[1]);
    }
}

// The last convolution, with one tap. Grid: 1, samples.
template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    unet_last(const float* __restrict__ parameters, float* activations,
              float* __restrict__ noise, int sums, int gamma, int beta, int weight,
              int bias)
{
    constexpr int kInputs = kWidth / kGroups;
    constexpr int kEach = kInputs > 32 ? kInputs / 32 : 1;
    __shared__ float parts[kAction * kSteps][kGroups];
    const Before before = {sums, gamma, beta, -1, -1, -1, -1};
    const int lane = threadIdx.x % 32;
    const int channel = threadIdx.x / 32 * kInputs + lane * kEach;
    const Norm<kEach> norm(parameters, before, channel, lane < kInputs);
    const float added = own_bias<kAction, kSteps>(parameters + bias, 0);
    prepare(parameters + weight, kAction * kWidth);
    float x[1][kEach][kSteps] = {};
    take<kInputs>(x[0], before, norm, activations, blockIdx.y);
    outputs_of<kPoint, kInputs, kEach, kSteps, 1, kAction>(
        x, parameters, weight, added, noise + blockIdx.y * kSteps * kAction, 1, kAction,
        0, kAction, parts);
}
