// Idea: one warp per output, whose lanes read neighbouring weights of one row.
// From the rung before: neighbouring threads have neighbouring inputs instead of
// neighbouring outputs, and add up by shuffles.
// Requires: a block of kThreads threads; a grid of outputs and the batch.
#include "../../common/warp.cuh"
#include "classifier.cuh"

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads)
    classifier_row_warp(const float* __restrict__ weights,
                        const float* __restrict__ input, float* __restrict__ output,
                        int inputs, int outputs)
{
    const int lane = threadIdx.x % kWarp;
    const int row = blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp;
    if (row >= outputs) return;
    const float* mine = weights + static_cast<size_t>(row) * inputs;
    const float* values = input + static_cast<size_t>(blockIdx.y) * inputs;
    float sum = 0.0f;
    for (int i = lane; i < inputs; i += kWarp) {
        sum = multiply_add(mine[i], values[i], sum);
    }
    sum = warp_sum(sum);
    if (lane == 0) output[static_cast<size_t>(blockIdx.y) * outputs + row] = sum;
}
