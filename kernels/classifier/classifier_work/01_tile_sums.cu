// Idea: the report's tile with two parameters: threads per block and work per thread.
// From the rung before: this is the first rung: `tile_sums` of the ladder classifier,
// in which a thread adds up kEach products before the warp reduces them.
// Requires: a block of kThreads threads; a grid of strips of kWarp * kEach inputs and
// of pieces of kThreads / kWarp outputs; output is zero.
#include "../../common/warp.cuh"
#include "../zero.cuh"

template <int kThreads, int kEach>
__global__ void __launch_bounds__(kThreads)
    classifier_work(const float* __restrict__ weights, const float* __restrict__ input,
                    float* __restrict__ output, int inputs, int outputs)
{
    const int lane = threadIdx.x % kWarp;
    const int first = blockIdx.x * (kWarp * kEach) + lane;
    const int row = blockIdx.y * (kThreads / kWarp) + threadIdx.x / kWarp;
    if (row >= outputs) return;  // the same for all lanes of a warp
    const float* const mine = weights + static_cast<size_t>(row) * inputs;
    float sum = 0.0f;
#pragma unroll 8
    for (int step = 0; step < kEach; ++step) {
        const int i = first + step * kWarp;
        sum += i < inputs ? mine[i] * input[i] : 0.0f;
    }
    sum = warp_sum(sum);
    if (lane == 0) atomicAdd(output + row, sum);
}
