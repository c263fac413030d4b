// Prefix sums within each warp: element i becomes the sum of the warp's elements up to
// and including i. The kernel has two mistakes: one shows at every size, the other only
// when the last warp is not full.
constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

__global__ void warp_scan(
    const float* __restrict__ source, float* __restrict__ sums, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x % kWarp;
    if (i >= n) {
        return;
    }
    float value = source[i];
    for (int offset = 1; offset < kWarp; offset *= 2) {
        // TODO: which value does lane 0 get, with no lane to its left?
        value += __shfl_up_sync(kAllLanes, value, offset);
    }
    sums[i] = value;
}
