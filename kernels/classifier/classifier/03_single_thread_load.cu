// Idea: a block per input; one thread loads the column of weights for the block.
// From the rung before: class2 of the course report: blocks are columns instead of
// tiles, and a thread has one output.
// Requires: blocks of kThreads threads; a grid of inputs x pieces of kThreads outputs x
// batch; output is zero.
#include "../zero.cuh"

constexpr int kThreads = 1024;

__global__ void __launch_bounds__(kThreads)
    classifier_single_thread_load(const float* __restrict__ weights,
                                  const float* __restrict__ input,
                                  float* __restrict__ output, int inputs, int outputs)
{
    __shared__ float column[kThreads];
    __shared__ float value;
    const int i = blockIdx.x;
    const int first = blockIdx.y * kThreads;
    const size_t sample = blockIdx.z;
    if (threadIdx.x == 0 && i < inputs) {
        for (int row = first; row < min(first + kThreads, outputs); ++row) {
            column[row - first] = weights[static_cast<size_t>(row) * inputs + i];
        }
        value = input[sample * inputs + i];
    }
    __syncthreads();  // thread 0 has stored the column before the block reads it
    const int row = first + threadIdx.x;
    if (i < inputs && row < outputs) {
        atomicAdd(output + sample * outputs + row, column[threadIdx.x] * value);
    }
}
