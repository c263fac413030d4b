// Idea: start the second launch early, and let it wait on the GPU.
// From the rung before: programmatic dependent launch; blocks allow the second launch
// as soon as they start.
// Requires: source aligned to 16 bytes; blocks of kThreads threads; one block per
// kChunk floats, then one block for the sums, launched with pdl.
#include "chunk_sum.cuh"

__global__ void __launch_bounds__(kThreads) sum_dependent(
    const float* __restrict__ source, float* __restrict__ sums, size_t n)
{
    start_next_launch();
    const float sum = block_sum(thread_sum(source, n));
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
    }
}
