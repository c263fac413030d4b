// Idea: the block that finishes last compares all blocks' results, in one launch.
// From the rung before: a ticket per block instead of a second launch.
// Requires: source aligned to 16 bytes; at most 2^32 floats; a block of kThreads
// threads; one launch at a time.
constexpr int kThreads = 1024;
// Two blocks of 1024 threads fit with at most 32 registers per thread.
constexpr int kBlocksPerSm = 2;
constexpr int kUnroll = 8;
constexpr int kWidth = sizeof(float4) / sizeof(float);
constexpr int kChunk = kThreads * kUnroll * kWidth;
#include "keys.cuh"

// The number of blocks that have finished. After the last one, atomicInc wraps it to
// zero, ready for the next launch.
__device__ unsigned tickets = 0;

__global__ void __launch_bounds__(kThreads, kBlocksPerSm) argmax_last_block(
    const float* __restrict__ source, Packed* __restrict__ bests,
    long long* __restrict__ index, size_t n)
{
    __shared__ bool last;
    Packed value = block_best(thread_best(source, n));
    if (threadIdx.x == 0) {
        bests[blockIdx.x] = value;
        __threadfence();  // the value is visible before the ticket is taken
        last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();  // thread 0 has written `last` before the block reads it
    if (last) {
        __threadfence();  // the other blocks' values are read after their tickets
        value = 0;
        for (unsigned i = threadIdx.x; i < gridDim.x; i += kThreads) {
            // From L2: this SM's L1 is not coherent with other SMs' writes.
            const Packed other = __ldcg(bests + i);
            value = other > value ? other : value;
        }
        value = block_best(value);
        if (threadIdx.x == 0) {
            *index = index_of(value);
        }
    }
}
