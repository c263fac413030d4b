// Prefix sums within each warp: element i becomes the sum of the warp's elements up to
// and including i. Every lane takes part in the shuffles, and adds only what comes from
// a lane that exists.
constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

__global__ void warp_scan(
    const float* __restrict__ source, float* __restrict__ sums, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x % kWarp;
    float value = i < n ? source[i] : 0.0f;
    for (int offset = 1; offset < kWarp; offset *= 2) {
        const float left = __shfl_up_sync(kAllLanes, value, offset);
        if (lane >= offset) {
            value += left;
        }
    }
    if (i < n) {
        sums[i] = value;
    }
}
