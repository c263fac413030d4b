// Idea: keep four loads in flight per thread: values arrive while others are counted.
// From the rung before: kUnroll independent loads, all issued before the first value is
// counted.
// Requires: counts set to zero; values aligned to 16 bytes; a block of kThreads
// threads; values of kBins or more are not counted.
#include "clear.cuh"
#include "count.cuh"

constexpr int kThreads = 1024;
constexpr int kCopies = 32;  // one per lane and so one per bank
constexpr int kUnroll = 4;

template <int kBins>
__global__ void __launch_bounds__(kThreads) histogram_unrolled(
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
    size_t i = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
    for (; i + (kUnroll - 1) * stride < quads; i += kUnroll * stride) {
        uint4 quad[kUnroll];
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            quad[u] = reinterpret_cast<const uint4*>(values)[i + u * stride];
        }
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            count_quad<kBins, kCopies>(copy, quad[u]);
        }
    }
    for (; i < quads; i += stride) {
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
