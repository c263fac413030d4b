// Idea: one copy per lane, interleaved: lane l uses bank l, whatever the values.
// From the rung before: as many copies in as many bytes, but one per lane instead of
// one per warp: word bin * 32 + lane.
// Requires: counts set to zero; values aligned to 16 bytes; a block of kThreads
// threads; values of kBins or more are not counted.
#include "clear.cuh"
#include "count.cuh"

constexpr int kThreads = 1024;
constexpr int kCopies = 32;  // one per lane and so one per bank

template <int kBins>
__global__ void __launch_bounds__(kThreads) histogram_per_lane(
    const unsigned char* __restrict__ values, unsigned* __restrict__ counts, size_t n)
{
    __shared__ unsigned copies[kBins * kCopies];
    for (int word = threadIdx.x; word < kBins * kCopies; word += kThreads) {
        copies[word] = 0;
    }
    __syncthreads();  // every bin of every copy is zero before any thread counts

    unsigned* copy = &copies[threadIdx.x % kCopies];
    const size_t quads = n / sizeof(uint4);
    const size_t stride = static_cast<size_t>(gridDim.x) * kThreads;
    for (size_t i = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x; i < quads;
         i += stride) {
        count_quad<kBins, kCopies>(copy, reinterpret_cast<const uint4*>(values)[i]);
    }
    count_tail<kBins, kCopies>(copy, values, n);
    __syncthreads();  // every value is counted before another lane's copy is read

    for (int bin = threadIdx.x; bin < kBins; bin += kThreads) {
        unsigned sum = 0;
        for (int step = 0; step < kCopies; ++step) {
            // Lanes read different bins, so each lane starts in a different bank.
            sum += copies[bin * kCopies + (bin + step) % kCopies];
        }
        if (sum > 0) {
            atomicAdd(&counts[bin], sum);
        }
    }
}
