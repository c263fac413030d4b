// Idea: the first rung of the ladder histogram, with its 256 counts at a place of our choice.
// From the rung before: nothing; this is the first rung.
// Requires: counts that are zero, of which the first `before` stay so.
constexpr int kThreads = 256;

// Zero all counts before any block adds to them: a launch of its own, for blocks of one launch cannot wait for another.
__global__ void clear(unsigned* __restrict__ counts, int number)
{
    for (int i = threadIdx.x; i < number; i += blockDim.x) {
        counts[i] = 0;
    }
}

__global__ void histogram_place(
    const unsigned char* __restrict__ values, unsigned* __restrict__ counts, size_t n, int before)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (i < n) {
        atomicAdd(&counts[before + values[i]], 1u);
    }
}
