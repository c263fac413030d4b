// Idea: load 16 values at a time, so that loading costs less than counting.
// From the rung before: values are loaded as uint4, and their bytes are extracted from
// its words.
// Requires: counts set to zero; values aligned to 16 bytes; values of kBins or more are
// not counted.
#include "clear.cuh"
#include "count.cuh"

template <int kBins>
__global__ void histogram_vectorised(
    const unsigned char* __restrict__ values, unsigned* __restrict__ counts, size_t n)
{
    __shared__ unsigned copy[kBins];
    for (int bin = threadIdx.x; bin < kBins; bin += blockDim.x) {
        copy[bin] = 0;
    }
    __syncthreads();  // every bin of the copy is zero before any thread counts

    const size_t quads = n / sizeof(uint4);
    const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
         i < quads; i += stride) {
        count_quad<kBins, 1>(copy, reinterpret_cast<const uint4*>(values)[i]);
    }
    count_tail<kBins, 1>(copy, values, n);
    __syncthreads();  // every value is counted before the copy is read

    for (int bin = threadIdx.x; bin < kBins; bin += blockDim.x) {
        if (copy[bin] > 0) {
            atomicAdd(&counts[bin], copy[bin]);
        }
    }
}
