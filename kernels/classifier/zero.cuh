// Zeroes the outputs, in a separate launch before rungs that add to them by atomics.
// Blocks of one launch cannot wait for each other.
#pragma once

template <int kThreads, typename T>
__global__ void zero_output(T* __restrict__ output, size_t n)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (i < n) output[i] = 0;
}
