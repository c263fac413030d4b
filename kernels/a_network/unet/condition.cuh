// Before the first stage: the condition, from the time step and the observation, and
// the first convolution. Also the FiLM layers, which read the condition.
#pragma once
#include "exchange.cuh"
#include "fast_mish.cuh"
#include "products.cuh"

__device__ __forceinline__ float sum_of_lanes(float value)
{
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) {
        value += __shfl_xor_sync(kAllLanes, value, apart);
    }
    return value;
}

// One output of a linear layer, by one warp; its inputs are in shared memory.
template <int kLength>
__device__ __forceinline__ float dot(const Weight* weights, const float* inputs)
{
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kLength; i += 32) {
        const int at = i + threadIdx.x % 32;
        if (kLength % 32 == 0 || at < kLength) {
            sum += as_float(weights[at]) * inputs[at];
        }
    }
    return sum_of_lanes(sum);
}

template <int kWidth>
__device__ __forceinline__ void compute_film(Ring& ring, const Film& film,
                                             float* exchange)
{
    constexpr int kInputs = kWidth + kObservation;
    const int rows = 2 * film.rows;
    const Weight* weights = ring.wait<kWidth>();
    const Weight* bias = weights + rows * kInputs + bias_before(blockIdx.x * rows);
    const float* condition = held<kWidth>().condition;
    for (int row = threadIdx.x / 32; row < rows; row += kTeams * kWidth / 32) {
        const float sum = dot<kInputs>(weights + row * kInputs, condition);
        if (threadIdx.x % 32 == 0) {
            hand_over(exchange + film.values + blockIdx.x * rows + row,
                      sum + as_float(bias[row]));
        }
    }
    ring.release();
}

// The input of the FiLM layers: the time step's embedding after two linear layers, then
// the observation, both activated. `scratch`: the embedding, then 4 * kWidth floats.
template <int kWidth>
__device__ __forceinline__ void prepare_condition(Ring& ring,
                                                  const Weight* parameters,
                                                  float* exchange, float* scratch,
                                                  float observed)
{
    constexpr int kWarps = kTeams * kWidth / 32;
    const Program& program = held<kWidth>().program;
    float* hidden = scratch + kWidth;
    const int warp = threadIdx.x / 32;
    const float bias =
        warp < 2 ? as_float(parameters[program.step_bias[1] + blockIdx.x * 2 + warp])
                 : 0.0f;
    const Weight* weights = ring.wait<kWidth>();
    for (int row = warp; row < 8; row += kWarps) {
        const float sum = dot<kWidth>(weights + row * kWidth, scratch);
        if (threadIdx.x % 32 == 0) {
            hand_over(exchange + program.hidden + blockIdx.x * 8 + row,
                      sum + as_float(weights[8 * kWidth + row]));
        }
    }
    ring.release();
    for (int i = threadIdx.x; i < 4 * kWidth; i += kTeams * kWidth) {
        hidden[i] = mish(await(exchange + program.hidden + i));
    }
    consumers_sync<kWidth>();  // the second layer's input is complete
    weights = ring.wait<kWidth>();
    if (warp < 2) {
        const float sum = dot<4 * kWidth>(weights + warp * 4 * kWidth, hidden);
        if (threadIdx.x % 32 == 0) {
            hand_over(exchange + program.embedded + blockIdx.x * 2 + warp, sum + bias);
        }
    }
    ring.release();
    for (int i = threadIdx.x; i < kWidth + kObservation; i += kTeams * kWidth) {
        held<kWidth>().condition[i] =
            mish(i < kWidth ? await(exchange + program.embedded + i) : observed);
    }
    consumers_sync<kWidth>();  // the condition is complete
}

// The first convolution, which has two inputs, and the 1-tap convolution beside it: 8
// positions per thread.
template <int kWidth>
__device__ __forceinline__ void first_sums(const Weight* parameters,
                                           const float* sample,
                                           float (&sum)[8], float (&around)[8])
{
    constexpr Program program = make_whole_program<kWidth>();
    const int channel = threadIdx.x / 2, first = threadIdx.x % 2 * 8;
    const Weight* weight = parameters + program.first_weight + channel * kAction * 5;
    const Weight* point = parameters + program.first_point_weight + channel * kAction;
    const float bias = as_float(parameters[program.first_bias + channel]);
    const float point_bias = as_float(parameters[program.first_point_bias + channel]);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        sum[i] = bias;
        around[i] = point_bias;
    }
#pragma unroll
    for (int j = 0; j < kAction; ++j) {
        float x[12];
#pragma unroll
        for (int i = 0; i < 12; ++i) {
            const int p = first + i - 2;
            x[i] = p >= 0 && p < kSteps ? sample[p * kAction + j] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
#pragma unroll
            for (int t = 0; t < 5; ++t) {
                sum[i] += as_float(weight[j * 5 + t]) * x[i + t];
            }
            around[i] += as_float(point[j]) * x[i + 2];
        }
    }
}
