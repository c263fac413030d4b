// Idea: 16 bytes per store: 512 bytes per request.
// From the rung before: a quarter of the stores; the last n % 4 words
// are written one by one.
// Requires: target aligned to 16 bytes.
constexpr unsigned kOdd = 2654435761u;  // so that neighbours always differ
constexpr size_t kWidth = sizeof(uint4) / sizeof(unsigned);

__global__ void write_vectorised(unsigned* __restrict__ target, size_t n)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const size_t quads = n / kWidth;
    if (i < quads) {
        const unsigned first = static_cast<unsigned>(i * kWidth) * kOdd;
        const uint4 value =
            make_uint4(first, first + kOdd, first + 2 * kOdd, first + 3 * kOdd);
        reinterpret_cast<uint4*>(target)[i] = value;
    }
    const size_t tail = quads * kWidth + i;
    if (tail < n) {
        target[tail] = static_cast<unsigned>(tail) * kOdd;
    }
}
