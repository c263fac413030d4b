// Running sums within each warp: element i becomes the sum of the warp's elements up to and with i.
// Two mistakes. One shows at every size, the other when the last warp is not full.
constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

__global__ void warp_scan(const float* __restrict__ source, float* __restrict__ sums, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int lane = threadIdx.x % kWarp;
    if (i >= n) {
        return;
    }
    float value = source[i];
    for (int offset = 1; offset < kWarp; offset *= 2) {
        value += __shfl_up_sync(kAllLanes, value, offset);  // what does lane 0 get, which has nobody to its left?
    }
    sums[i] = value;
}
