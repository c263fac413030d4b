// Two bins: counts[0] for values below 128, counts[1] for the others. Each warp counts
// the votes of its lanes.
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
    // No lane has returned: lanes past the end also vote, for neither bin.
    const int total = __popc(__ballot_sync(kAllLanes, inside));
    const int ones = __popc(__ballot_sync(kAllLanes, high));
    if (threadIdx.x % kWarpSize == 0) {
        if (total > ones) atomicAdd(&counts[0], total - ones);
        if (ones > 0) atomicAdd(&counts[1], ones);
    }
}
