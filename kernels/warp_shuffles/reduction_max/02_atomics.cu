// Idea: one atomic per block: a maximum does not depend on the order of blocks.
// From the rung before: an integer atomicMax on the float itself; a launch of one
// thread sets it to minus infinity first.
// Requires: source aligned to 16 bytes; a block of kThreads threads; one block per
// kChunk floats; max_reset launched before it.
constexpr int kThreads = 1024;
constexpr int kUnroll = 8;
constexpr int kWidth = sizeof(float4) / sizeof(float);
constexpr int kChunk = kThreads * kUnroll * kWidth;
#include "keys.cuh"

// From +0 up, floats are ordered like their bits as signed integers; from -0 down, in
// the reverse order of their bits as unsigned integers. Minus infinity loses to
// both.
__device__ void atomic_max(float* target, float value)
{
    const int bits = __float_as_int(value);
    if (bits >= 0) {
        atomicMax(reinterpret_cast<int*>(target), bits);
    } else {
        atomicMin(reinterpret_cast<unsigned*>(target), static_cast<unsigned>(bits));
    }
}

__global__ void max_reset(float* __restrict__ largest)
{
    *largest = -__int_as_float(0x7f800000);
}

__global__ void __launch_bounds__(kThreads)
    max_atomics(const float* __restrict__ source, float* __restrict__ largest, size_t n)
{
    const int key = block_max(thread_max(source, n));
    if (threadIdx.x == 0) {
        atomic_max(largest, float_of(key));
    }
}
