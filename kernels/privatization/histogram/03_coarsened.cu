// Idea: only as many blocks as fit on the GPU, so that there are few copies to merge.
// From the rung before: a grid-stride loop over the values.
// Requires: counts set to zero; values of kBins or more are not counted.
#include "clear.cuh"

template <int kBins>
__global__ void histogram_coarsened(
    const unsigned char* __restrict__ values, unsigned* __restrict__ counts, size_t n)
{
    __shared__ unsigned copy[kBins];
    for (int bin = threadIdx.x; bin < kBins; bin += blockDim.x) {
        copy[bin] = 0;
    }
    __syncthreads();  // every bin of the copy is zero before any thread counts

    const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
         i += stride) {
        if (values[i] < kBins) {
            atomicAdd(&copy[values[i]], 1u);
        }
    }
    __syncthreads();  // every value is counted before the copy is read

    for (int bin = threadIdx.x; bin < kBins; bin += blockDim.x) {
        if (copy[bin] > 0) {
            atomicAdd(&counts[bin], copy[bin]);
        }
    }
}
