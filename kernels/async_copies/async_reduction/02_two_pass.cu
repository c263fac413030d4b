// Idea: two plain passes: one launch writes the blocks' sums, the next adds them.
// From the rung before: no ticket and no last block; the end of the first launch is
// the barrier.
// Requires: source aligned to 16 bytes; blocks of kThreads threads; one block per
// kChunk floats, then one block for the sums.
#include "chunk_sum.cuh"

__global__ void __launch_bounds__(kThreads) sum_two_pass(
    const float* __restrict__ source, float* __restrict__ sums, size_t n)
{
    const float sum = block_sum(thread_sum(source, n));
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
    }
}
