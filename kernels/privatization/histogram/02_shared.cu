// Idea: each block counts into a private copy in shared memory and merges it once.
// From the rung before: one private copy per block; two barriers; global atomics only
// for the bins of the copy.
// Requires: counts set to zero; values of kBins or more are not counted.
#include "clear.cuh"

template <int kBins>
__global__ void histogram_shared(
    const unsigned char* __restrict__ values, unsigned* __restrict__ counts, size_t n)
{
    __shared__ unsigned copy[kBins];
    for (int bin = threadIdx.x; bin < kBins; bin += blockDim.x) {
        copy[bin] = 0;
    }
    __syncthreads();  // every bin of the copy is zero before any thread counts

    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n && values[i] < kBins) {
        atomicAdd(&copy[values[i]], 1u);
    }
    __syncthreads();  // every value is counted before the copy is read

    for (int bin = threadIdx.x; bin < kBins; bin += blockDim.x) {
        if (copy[bin] > 0) {
            atomicAdd(&counts[bin], copy[bin]);
        }
    }
}
