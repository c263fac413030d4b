// Idea: compute an address with one byte permute: bin in byte 1, copy in byte 0.
// From the rung before: 64 copies, so that a bin fills 256 bytes, and no shift, mask or
// addition per address.
// Requires: counts set to zero; values aligned to 16 bytes; a block of kThreads
// threads; kBins * kBinBytes bytes of dynamic shared memory; values of kBins or more
// are not counted.
#include "clear.cuh"

constexpr int kThreads = 1024;
constexpr int kUnroll = 4;
constexpr int kBinBytes = 256;  // one step of byte 1 of an address
constexpr int kWordBytes = sizeof(unsigned);
// One copy per lane of two neighbouring warps, so two in each bank.
constexpr int kCopies = kBinBytes / kWordBytes;

// Byte 0 of the result is byte 0 of place, and byte 1 is byte b of word. Bytes 2 and 3
// are zero, like byte 1 of place.
__device__ __forceinline__ unsigned address(unsigned word, int b, unsigned place)
{
    return __byte_perm(word, place, 0x5504 | b << 4);
}

template <int kBins>
__device__ __forceinline__ void count(char* copies, unsigned at)
{
    if (kBins == 256 || at < kBins * kBinBytes) {
        atomicAdd(reinterpret_cast<unsigned*>(copies + at), 1u);
    }
}

// Add 1 to the bin of each of the 16 values in a quad of words.
template <int kBins>
__device__ __forceinline__ void count_quad(char* copies, unsigned place, uint4 quad)
{
    const unsigned words[] = {quad.x, quad.y, quad.z, quad.w};
#pragma unroll
    for (unsigned word : words) {
#pragma unroll
        for (int b = 0; b < kWordBytes; ++b) {
            count<kBins>(copies, address(word, b, place));
        }
    }
}

template <int kBins>
__global__ void __launch_bounds__(kThreads) histogram_byte_perm(
    const unsigned char* __restrict__ values, unsigned* __restrict__ counts, size_t n)
{
    static_assert(kBins <= 256, "a value is a byte");
    extern __shared__ unsigned copies[];
    for (int word = threadIdx.x; word < kBins * kCopies; word += kThreads) {
        copies[word] = 0;
    }
    __syncthreads();  // every bin of every copy is zero before any thread counts

    char* bytes = reinterpret_cast<char*>(copies);
    const unsigned place = threadIdx.x % kCopies * kWordBytes;
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
            count_quad<kBins>(bytes, place, quad[u]);
        }
    }
    for (; i < quads; i += stride) {
        count_quad<kBins>(bytes, place, reinterpret_cast<const uint4*>(values)[i]);
    }
    const size_t tail = quads * sizeof(uint4) +
                        static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (tail < n) {
        count<kBins>(bytes, values[tail] * kBinBytes + place);
    }
    __syncthreads();  // every value is counted before another thread's copy is read

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
