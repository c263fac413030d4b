// Idea: blocks take chunks from a queue, so that a block which is ahead takes more, and all end together.
// From the rung before: chunks of 64 KB, numbered by an atomic counter, instead of an equal share for every block.
// Requires: counts and the queue that are zero; values aligned to 16 bytes; a block of kThreads threads; values of kBins
// or more are not counted.
#include "count.cuh"

constexpr int kThreads = 1024;
constexpr int kCopies = 32;  // one per lane, which is also one per bank
constexpr int kUnroll = 4;
constexpr int kChunk = kThreads * kUnroll;  // quads

// Zero the counts and the number of chunks taken.
template <int kBins>
__global__ void histogram_clear(unsigned* __restrict__ counts, unsigned* __restrict__ queue)
{
    for (int bin = threadIdx.x; bin < kBins; bin += blockDim.x) {
        counts[bin] = 0;
    }
    if (threadIdx.x == 0) {
        *queue = 0;
    }
}

template <int kBins>
__global__ void __launch_bounds__(kThreads)
histogram_queued(const unsigned char* __restrict__ values, unsigned* __restrict__ counts, unsigned* __restrict__ queue,
                 size_t n)
{
    __shared__ unsigned copies[kBins * kCopies];
    __shared__ unsigned next;
    for (int word = threadIdx.x; word < kBins * kCopies; word += kThreads) {
        copies[word] = 0;
    }
    __syncthreads();  // every bin of every copy is zero before any thread counts

    unsigned* copy = &copies[threadIdx.x % kCopies];
    const size_t quads = n / sizeof(uint4);
    const unsigned chunks = quads / kChunk;
    for (unsigned chunk = blockIdx.x; chunk < chunks; chunk = next) {  // the first chunk of each block is its own
        const uint4* from = reinterpret_cast<const uint4*>(values) + static_cast<size_t>(chunk) * kChunk + threadIdx.x;
        uint4 quad[kUnroll];
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            quad[u] = from[u * kThreads];
        }
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            count_quad<kBins, kCopies>(copy, quad[u]);
        }
        __syncthreads();  // every thread has read the number of this chunk before it is replaced
        if (threadIdx.x == 0) {
            next = gridDim.x + atomicAdd(queue, 1u);
        }
        __syncthreads();  // the number of the next chunk is there before any thread reads it
    }
    const size_t stride = static_cast<size_t>(gridDim.x) * kThreads;
    const size_t rest = static_cast<size_t>(chunks) * kChunk + static_cast<size_t>(blockIdx.x) * kThreads;
    for (size_t i = rest + threadIdx.x; i < quads; i += stride) {
        count_quad<kBins, kCopies>(copy, reinterpret_cast<const uint4*>(values)[i]);
    }
    count_tail<kBins, kCopies>(copy, values, n);
    __syncthreads();  // every value is counted before another lane's copy is read

    for (int bin = threadIdx.x; bin < kBins; bin += kThreads) {
        unsigned sum = 0;
        for (int step = 0; step < kCopies; ++step) {
            sum += copies[bin * kCopies + (bin + step) % kCopies];  // lanes are on different bins: start apart, by bank
        }
        if (sum > 0) {
            atomicAdd(&counts[bin], sum);
        }
    }
}
