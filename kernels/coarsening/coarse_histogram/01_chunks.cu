// Idea: each thread counts kOut loads of 16 values: fewer blocks, so fewer merges.
// From the rung before: the first rung; with kOut = 1 it is the kernel with one load
// per thread.
// Requires: counts set to zero; values aligned to 16 bytes; a block of kThreads
// threads; values of kBins or more are not counted.
constexpr int kThreads = 1024;
// One copy per lane and so per bank: bin b of lane l is word b * kCopies + l.
constexpr int kCopies = 32;
constexpr int kBitsPerValue = 8;

// Zero the counts before any block adds to them, in a separate launch, because blocks
// of one launch cannot wait for each other.
template <int kBins>
__global__ void coarse_histogram_clear(unsigned* __restrict__ counts)
{
    for (int bin = threadIdx.x; bin < kBins; bin += kThreads) {
        counts[bin] = 0;
    }
}

// A copy of count.cuh of the ladder histogram: including that file would compile to
// other instructions than those measured.
template <int kBins>
__device__ __forceinline__ void count(unsigned* copy, unsigned value)
{
    if (value < kBins) {
        atomicAdd(&copy[value * kCopies], 1u);
    }
}

template <int kBins>
__device__ __forceinline__ void count_quad(unsigned* copy, uint4 quad)
{
    const unsigned words[] = {quad.x, quad.y, quad.z, quad.w};
#pragma unroll
    for (unsigned word : words) {
#pragma unroll
        for (int shift = 0; shift < 32; shift += kBitsPerValue) {
            count<kBins>(copy, (word >> shift) & 0xff);
        }
    }
}

template <int kBins, int kOut>
__global__ void __launch_bounds__(kThreads) coarse_histogram_chunks(
    const unsigned char* __restrict__ values, unsigned* __restrict__ counts, size_t n)
{
    __shared__ unsigned copies[kBins * kCopies];
    for (int word = threadIdx.x; word < kBins * kCopies; word += kThreads) {
        copies[word] = 0;
    }
    __syncthreads();  // every bin of every copy is zero before any thread counts

    unsigned* copy = &copies[threadIdx.x % kCopies];
    const uint4* from = reinterpret_cast<const uint4*>(values);
    const size_t quads = n / sizeof(uint4);
    const size_t first =
        static_cast<size_t>(blockIdx.x) * kThreads * kOut + threadIdx.x;
    if (first + (kOut - 1) * kThreads < quads) {
        uint4 quad[kOut];
#pragma unroll
        for (int o = 0; o < kOut; ++o) {
            quad[o] = from[first + o * kThreads];
        }
#pragma unroll
        for (int o = 0; o < kOut; ++o) {
            count_quad<kBins>(copy, quad[o]);
        }
    } else {
        for (size_t i = first; i < quads; i += kThreads) {
            count_quad<kBins>(copy, from[i]);
        }
    }
    // At most 15 values follow the last whole quad.
    const size_t tail = quads * sizeof(uint4) + threadIdx.x;
    if (blockIdx.x == 0 && tail < n) {
        count<kBins>(copy, values[tail]);
    }
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
