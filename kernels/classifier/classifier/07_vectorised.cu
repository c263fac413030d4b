// Idea: load four weights at a time.
// From the rung before: the loop counts packs of kWidth floats, so that each load
// brings 16 bytes per lane.
// Requires: a block of kThreads threads; a grid of outputs and the batch; weights and
// input aligned to 16 bytes; kWidth = 4 where inputs is a multiple of 4, kWidth = 1
// otherwise.
#include "../../common/warp.cuh"
#include "classifier.cuh"

constexpr int kThreads = 128;

template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    classifier_vectorised(const float* __restrict__ weights,
                          const float* __restrict__ input, float* __restrict__ output,
                          int inputs, int outputs)
{
    using P = typename Pack<kWidth>::type;
    const int lane = threadIdx.x % kWarp;
    const int row = blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp;
    if (row >= outputs) return;
    const int packs = inputs / kWidth;
    const P* mine =
        reinterpret_cast<const P*>(weights) + static_cast<size_t>(row) * packs;
    const P* values =
        reinterpret_cast<const P*>(input) + static_cast<size_t>(blockIdx.y) * packs;
    float sum = 0.0f;
    for (int i = lane; i < packs; i += kWarp) {
        sum = multiply_add(mine[i], values[i], sum);
    }
    sum = warp_sum(sum);
    if (lane == 0) output[static_cast<size_t>(blockIdx.y) * outputs + row] = sum;
}
