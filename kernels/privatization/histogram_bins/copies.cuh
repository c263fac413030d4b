// A histogram with kCopies copies of kBins counters per block, interleaved: word bin *
// kCopies + lane % kCopies. The file that includes this defines kCopies.
constexpr int kThreads = 1024;
constexpr int kUnroll = 4;
constexpr int kBitsPerValue = 16;
static_assert(32 % kCopies == 0, "the lanes of a warp share the copies evenly");

template <int kBins>
__global__ void histogram_clear(unsigned* __restrict__ counts)
{
    for (int bin = threadIdx.x; bin < kBins; bin += kThreads) {
        counts[bin] = 0;
    }
}

// Add 1 to the bin of each of the 8 values in a quad of words.
template <int kBins>
__device__ __forceinline__ void count_quad(unsigned* copy, uint4 quad)
{
    const unsigned words[] = {quad.x, quad.y, quad.z, quad.w};
#pragma unroll
    for (unsigned word : words) {
#pragma unroll
        for (int shift = 0; shift < 32; shift += kBitsPerValue) {
            const unsigned value = (word >> shift) & 0xffff;
            if (value < kBins) {
                atomicAdd(&copy[value * kCopies], 1u);
            }
        }
    }
}

template <int kBins>
__global__ void __launch_bounds__(kThreads) histogram_copies(
    const unsigned short* __restrict__ values, unsigned* __restrict__ counts, size_t n)
{
    extern __shared__ unsigned copies[];
    for (int word = threadIdx.x; word < kBins * kCopies; word += kThreads) {
        copies[word] = 0;
    }
    __syncthreads();  // every bin of every copy is zero before any thread counts

    unsigned* copy = &copies[threadIdx.x % kCopies];
    constexpr size_t kWidth = sizeof(uint4) / sizeof(unsigned short);
    const size_t quads = n / kWidth;
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
            count_quad<kBins>(copy, quad[u]);
        }
    }
    for (; i < quads; i += stride) {
        count_quad<kBins>(copy, reinterpret_cast<const uint4*>(values)[i]);
    }
    const size_t tail =
        quads * kWidth + static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (tail < n && values[tail] < kBins) {
        atomicAdd(&copy[values[tail] * kCopies], 1u);
    }
    __syncthreads();  // every value is counted before another thread's copy is read

    for (int bin = threadIdx.x; bin < kBins; bin += kThreads) {
        unsigned sum = 0;
        for (int step = 0; step < kCopies; ++step) {
            sum += copies[bin * kCopies + (bin + step) % kCopies];
        }
        if (sum > 0) {
            atomicAdd(&counts[bin], sum);
        }
    }
}
