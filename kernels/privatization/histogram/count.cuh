// Add 1 to the bin of each of the 16 values in a quad of words. Bin b is copy[b *
// kCopies].
template <int kBins, int kCopies>
__device__ __forceinline__ void count_quad(unsigned* copy, uint4 quad)
{
    constexpr int kBitsPerValue = 8;
    const unsigned words[] = {quad.x, quad.y, quad.z, quad.w};
#pragma unroll
    for (unsigned word : words) {
#pragma unroll
        for (int shift = 0; shift < 32; shift += kBitsPerValue) {
            const unsigned value = (word >> shift) & 0xff;
            if (value < kBins) {
                atomicAdd(&copy[value * kCopies], 1u);
            }
        }
    }
}

// Count the values after the last whole quad, at most 15: one thread each.
template <int kBins, int kCopies>
__device__ __forceinline__ void count_tail(
    unsigned* copy, const unsigned char* __restrict__ values, size_t n)
{
    const size_t i = n / sizeof(uint4) * sizeof(uint4) +
                     static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n && values[i] < kBins) {
        atomicAdd(&copy[values[i] * kCopies], 1u);
    }
}
