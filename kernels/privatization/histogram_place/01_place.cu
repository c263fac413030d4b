// Idea: histogram's first rung, with its 256 counts at an offset that we choose.
// From the rung before: the first rung.
// Requires: counts set to zero; the first `before` of them stay zero.
constexpr int kThreads = 256;

// Zero all counts before any block adds to them, in a separate launch, because blocks
// of one launch cannot wait for each other.
__global__ void clear(unsigned* __restrict__ counts, int number)
{
    for (int i = threadIdx.x; i < number; i += blockDim.x) {
        counts[i] = 0;
    }
}

__global__ void histogram_place(
    const unsigned char* __restrict__ values, unsigned* __restrict__ counts, size_t n,
    int before)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (i < n) {
        atomicAdd(&counts[before + values[i]], 1u);
    }
}
