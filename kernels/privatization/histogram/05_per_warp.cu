// Idea: one copy per warp, so that a block's warps do not add to the same words.
// From the rung before: kWarps copies, one after the other, and a sum over them before
// the merge.
// Requires: counts set to zero; values aligned to 16 bytes; a block of kThreads
// threads; values of kBins or more are not counted.
#include "clear.cuh"
#include "count.cuh"

constexpr int kThreads = 1024;
constexpr int kWarpSize = 32;
constexpr int kWarps = kThreads / kWarpSize;

template <int kBins>
__global__ void __launch_bounds__(kThreads) histogram_per_warp(
    const unsigned char* __restrict__ values, unsigned* __restrict__ counts, size_t n)
{
    __shared__ unsigned copies[kWarps * kBins];
    for (int word = threadIdx.x; word < kWarps * kBins; word += kThreads) {
        copies[word] = 0;
    }
    __syncthreads();  // every bin of every copy is zero before any thread counts

    unsigned* copy = &copies[threadIdx.x / kWarpSize * kBins];
    const size_t quads = n / sizeof(uint4);
    const size_t stride = static_cast<size_t>(gridDim.x) * kThreads;
    for (size_t i = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x; i < quads;
         i += stride) {
        count_quad<kBins, 1>(copy, reinterpret_cast<const uint4*>(values)[i]);
    }
    count_tail<kBins, 1>(copy, values, n);
    __syncthreads();  // every value is counted before another warp's copy is read

    for (int bin = threadIdx.x; bin < kBins; bin += kThreads) {
        unsigned sum = 0;
        for (int warp = 0; warp < kWarps; ++warp) {
            sum += copies[warp * kBins + bin];
        }
        if (sum > 0) {
            atomicAdd(&counts[bin], sum);
        }
    }
}
