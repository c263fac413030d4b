// Idea: compare floats as integers, which puts NaN above everything.
// From the rung before: the first rung.
// Requires: source aligned to 16 bytes; a block of kThreads threads; one block per
// kChunk floats, then one block for their maxima.
constexpr int kThreads = 1024;
constexpr int kUnroll = 8;
constexpr int kWidth = sizeof(float4) / sizeof(float);
constexpr int kChunk = kThreads * kUnroll * kWidth;
#include "keys.cuh"

__global__ void __launch_bounds__(kThreads)
    max_two_pass(const float* __restrict__ source, float* __restrict__ maxima, size_t n)
{
    const int largest = block_max(thread_max(source, n));
    if (threadIdx.x == 0) {
        maxima[blockIdx.x] = float_of(largest);
    }
}
