// Idea: one thread per value adds 1 to its count in global memory, atomically.
// From the rung before: the first rung.
// Requires: counts set to zero; values of kBins or more are not counted.
#include "clear.cuh"

template <int kBins>
__global__ void histogram_global(
    const unsigned char* __restrict__ values, unsigned* __restrict__ counts, size_t n)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n && values[i] < kBins) {
        atomicAdd(&counts[values[i]], 1u);
    }
}
