// Two bins: counts[0] for values below 128, counts[1] for the others. As it is, every
// lane adds to global memory.
constexpr int kThreads = 256;
constexpr int kHalf = 128;
constexpr int kWarpSize = 32;
constexpr unsigned kAllLanes = 0xffffffff;

__global__ void clear(unsigned* __restrict__ counts)
{
    if (threadIdx.x < 2) counts[threadIdx.x] = 0;
}

__global__ void votes(
    const unsigned char* __restrict__ values, unsigned* __restrict__ counts, size_t n)
{
    const size_t i = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
    const bool inside = i < n;
    const bool high = inside && values[i] >= kHalf;
    // TODO: let each lane vote, and let one lane per warp add the warp's counts.
    if (inside) atomicAdd(&counts[high], 1u);
}
