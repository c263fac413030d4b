// Idea: every thread loads the weight that it multiplies.
// From the rung before: no shared memory and no barrier; a block has a thousand loads
// in flight instead of a few.
// Requires: blocks of kThreads threads; a grid of inputs x pieces of kThreads outputs x
// batch; output is zero.
#include "../zero.cuh"

constexpr int kThreads = 1024;

__global__ void __launch_bounds__(kThreads)
    classifier_columns(const float* __restrict__ weights,
                       const float* __restrict__ input, float* __restrict__ output,
                       int inputs, int outputs)
{
    const int i = blockIdx.x;
    const int row = blockIdx.y * kThreads + threadIdx.x;
    const size_t sample = blockIdx.z;
    if (i < inputs && row < outputs) {
        const float weight = weights[static_cast<size_t>(row) * inputs + i];
        atomicAdd(output + sample * outputs + row, weight * input[sample * inputs + i]);
    }
}
