// Idea: pack a float's key and its index into 64 bits that compare as one.
// From the rung before: the first rung.
// Requires: source aligned to 16 bytes; at most 2^32 floats; a block of kThreads
// threads; one block per kChunk floats.
constexpr int kThreads = 1024;
// Two blocks of 1024 threads fit with at most 32 registers per thread.
constexpr int kBlocksPerSm = 2;
constexpr int kUnroll = 8;
constexpr int kWidth = sizeof(float4) / sizeof(float);
constexpr int kChunk = kThreads * kUnroll * kWidth;
#include "keys.cuh"

__global__ void __launch_bounds__(kThreads, kBlocksPerSm) argmax_two_pass(
    const float* __restrict__ source, Packed* __restrict__ bests, size_t n)
{
    const Packed best = block_best(thread_best(source, n));
    if (threadIdx.x == 0) {
        bests[blockIdx.x] = best;
    }
}

// For one block: the best of all blocks' results.
__global__ void __launch_bounds__(kThreads) argmax_finish(
    const Packed* __restrict__ bests, long long* __restrict__ index, unsigned blocks)
{
    Packed best = 0;
    for (unsigned i = threadIdx.x; i < blocks; i += kThreads) {
        best = bests[i] > best ? bests[i] : best;
    }
    best = block_best(best);
    if (threadIdx.x == 0) {
        *index = index_of(best);
    }
}
