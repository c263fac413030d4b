// The kernels of the network, one for each convolution. kEarly: launches may start
// early (with pdl).
#pragma once
#include "fused.cuh"

// A warp for each of the block's 8 outputs of a linear layer, whose input is shared.
template <bool kActivated>
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
    if (threadIdx.x % 32 == 0) {
        const float value = sum + bias[output];
        to[output] = kActivated ? mish(value) : value;
    }
}

// The first linear layer of the time step. Grid: outputs / 8, samples.
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
    linear<false>(parameters + weight, parameters + bias, input,
                  activations + to + blockIdx.y * 4 * kWidth, kWidth,
                  blockIdx.x * kGroups);
}

// The second one, and the observation after it, activated: what FiLM's layers take.
// Grid: outputs / 8, samples.
template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    unet_condition(const float* __restrict__ parameters,
                   const float* __restrict__ observation, float* activations, int from,
                   int weight, int bias, int to)
{
    __shared__ float input[4 * kWidth];
    constexpr int kShare = 4 * kWidth * kGroups;
    prefetch(parameters + weight + blockIdx.x * kShare, kShare);
    meet_launches();
    for (int i = threadIdx.x; i < 4 * kWidth; i += kThreads) {
        input[i] = mish(activations[from + blockIdx.y * 4 * kWidth + i]);
    }
    __syncthreads();  // the input is complete
    float* condition = activations + to + blockIdx.y * (kWidth + kObservation);
    linear<true>(parameters + weight, parameters + bias, input, condition, 4 * kWidth,
                 blockIdx.x * kGroups);
    if (blockIdx.x == 0 && threadIdx.x < kObservation) {
        condition[kWidth + threadIdx.x] =
            mish(observation[blockIdx.y * kObservation + threadIdx.x]);
    }
}

// FiLM's values that a block computes: kRows scales from the first on, and as many
// shifts, a warp for each.
template <int kWidth, int kRows>
__device__ __forceinline__ void film_of(const float* parameters, float* activations,
                                        int condition, int weight, int bias, int to,
                                        int channels, int first)
{
    constexpr int kInputs = kWidth + kObservation;
    const int lane = threadIdx.x % 32;
    const float* inputs = activations + condition + blockIdx.y * kInputs;
#pragma unroll
    for (int i = 0; i < 2 * kRows; i += kGroups) {
        const int at = i + threadIdx.x / 32;
        if (at >= 2 * kRows) break;
        const int row = first + at % kRows + at / kRows * channels;
        float sum = 0.0f;
#pragma unroll
        for (int input = 0; input < kInputs; input += 32) {
            if (input + lane < kInputs) {
                sum += parameters[weight + row * kInputs + input + lane] *
                       inputs[input + lane];
            }
        }
        sum = warp_sum(sum);
        if (lane == 0) {
            activations[to + blockIdx.y * 2 * channels + row] =
                sum + parameters[bias + row];
        }
    }
}

// Of a block's share of scales and shifts.
template <int kWidth, int kRows>
__device__ __forceinline__ void prefetch_film(const float* weights, int channels,
                                              int first)
{
    constexpr int kInputs = kWidth + kObservation;
    prefetch(weights + first * kInputs, kRows * kInputs);
    prefetch(weights + (channels + first) * kInputs, kRows * kInputs);
}

// The first convolution, of two inputs, and the one with one tap of its residual: a
// thread for each output; then FiLM's values. Grid: kWidth / 16, samples.
template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    unet_first(const float* __restrict__ parameters, const float* __restrict__ input,
               float* activations, int weight, int bias, int to, int point,
               int point_bias, int point_to, int condition, int film_weight,
               int film_bias, int film_to)
{
    constexpr int kRows = 16;
    const int first = blockIdx.x * kRows;
    prefetch_film<kWidth, kRows>(parameters + film_weight, kWidth, first);
    meet_launches();
    const int channel = first + threadIdx.x / kSteps;
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
    film_of<kWidth, kRows>(parameters, activations, condition, film_weight, film_bias,
                           film_to, kWidth, first);
}

// A convolution, the one with one tap of the residual if `point` is not negative, and
// FiLM's values if `film_weight` is not. What `next` has, the next launch will read.
// Grid: outputs / kRows, samples.
template <int kWidth, int kKind, int kChannels, int kLength, int kSegments, int kRows>
__global__ void __launch_bounds__(kThreads)
    unet_stage(const float* __restrict__ parameters, float* activations, int sums,
               int gamma, int beta, int film, int residual, int result, int skip,
               int outputs, int weight, int bias, int to, int point, int point_bias,
               int point_to, int condition, int film_weight, int film_bias, int film_to,
               int next, int next_floats)
{
    constexpr int kInputs = kChannels / kGroups;
    constexpr int kEach = kInputs > 32 ? kInputs / 32 : 1;
    constexpr int kAfter = length_after(kKind, kLength);
    constexpr int kMain = kRows * kSegments * kInputs * taps_of(kKind);  // of a warp
    constexpr int kPoints = kRows * kSegments * kInputs;
    extern __shared__ __align__(16) float slots[];
    __shared__ float parts[2][kRows * (kAfter > kLength ? kAfter : kLength)][kGroups];
    const int first = blockIdx.x * kRows, sample = blockIdx.y;
    const int group = threadIdx.x / 32, lane = threadIdx.x % 32;
    float* main_slots = slots + group * kMain;
    float* point_slots = slots + kGroups * kMain + group * kPoints;
    fetch<kKind, kInputs, kSegments, kRows>(main_slots, parameters + weight, first,
                                            outputs);
    if (point >= 0) {
        fetch<kPoint, kInputs, kSegments, kRows>(point_slots, parameters + point, first,
                                                 outputs);
    }
    close_group();
    const Before before = {sums, gamma, beta, film, residual, result, skip};
    const int channel = group * kInputs + lane * kEach;
    const Norm<kEach> norm(parameters, before, channel, lane < kInputs);
    const float added = own_bias<kRows, kAfter>(parameters + bias, first);
    float point_added = 0.0f;
    if (point >= 0) {
        point_added = own_bias<kRows, kLength>(parameters + point_bias, first);
    }
    if (film_weight >= 0) {
        prefetch_film<kWidth, kRows>(parameters + film_weight, outputs, first);
    }
    if constexpr (kEarly) {
        const int share = next_floats / gridDim.x;
        prefetch(parameters + next + blockIdx.x * share, share);
    }
    meet_launches();
    float x[kSegments][kEach][kLength] = {};
    take<kInputs>(x[0], before, norm, activations, sample);
    if constexpr (kSegments == 2) {
        if (lane < kInputs) {
            load<kEach * kLength>(
                &x[1][0][0],
                activations + skip + (sample * kChannels + channel) * kLength);
        }
    }
    wait_for_copies();
    __syncwarp();  // what the other lanes have copied is there too
    outputs_of<kKind, kInputs, kEach, kLength, kSegments, kRows>(
        x, main_slots, added, activations + to + sample * outputs * kAfter, kAfter, 1,
        first, parts[0]);
    if (point >= 0) {
        outputs_of<kPoint, kInputs, kEach, kLength, kSegments, kRows>(
            x, point_slots, point_added,
            activations + point_to + sample * outputs * kLength, kLength, 1, first,
            parts[1]);
    }
    if (film_weight >= 0) {
        film_of<kWidth, kRows>(parameters, activations, condition, film_weight,
                               film_bias, film_to, outputs, first);
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
    __shared__ __align__(16) float slots[kGroups][kAction * kInputs];
    const Before before = {sums, gamma, beta, -1, -1, -1, -1};
    const int group = threadIdx.x / 32, lane = threadIdx.x % 32;
    fetch<kPoint, kInputs, 1, kAction>(slots[group], parameters + weight, 0, kAction);
    close_group();
    const int channel = group * kInputs + lane * kEach;
    const Norm<kEach> norm(parameters, before, channel, lane < kInputs);
    const float added = own_bias<kAction, kSteps>(parameters + bias, 0);
    meet_launches();
    float x[1][kEach][kSteps] = {};
    take<kInputs>(x[0], before, norm, activations, blockIdx.y);
    wait_for_copies();
    __syncwarp();  // what the other lanes have copied is there too
    outputs_of<kPoint, kInputs, kEach, kSteps, 1, kAction>(
        x, slots[group], added, noise + blockIdx.y * kSteps * kAction, 1, kAction, 0,
        parts);
}
