// Zeroes the outputs, in a separate launch before rungs that add to them by atomics.
// Blocks of one launch cannot wait for each other.
#pragma once

template <typename T, int kThreads>
__global__ void __launch_bounds__(kThreads)
    convlayer_clear(T* __restrict__ output, size_t count)
{
    const size_t stride = static_cast<size_t>(gridDim.x) * kThreads;
    for (size_t i = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
         i += stride) {
        output[i] = 0;
    }
}
