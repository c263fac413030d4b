// Idea: one thread, one value; each adds 1 to its value's count in global memory, atomically.
// From the rung before: nothing; this is the first rung.
// Requires: counts that are zero; values of kBins or more are not counted.
#include "clear.cuh"

template <int kBins>
__global__ void histogram_global(const unsigned char* __restrict__ values, unsigned* __restrict__ counts, size_t n)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n && values[i] < kBins) {
        atomicAdd(&counts[values[i]], 1u);
    }
}
