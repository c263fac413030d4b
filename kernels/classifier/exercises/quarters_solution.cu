// Each warp stores its quarter in shared memory; after a barrier one thread adds the
// four, always in the same order.
constexpr int kThreads = 128;
constexpr int kWarp = 32;
constexpr int kWarps = kThreads / kWarp;
constexpr unsigned kAllLanes = 0xffffffffu;

__global__ void classifier_quarters(const float* __restrict__ weights,
                                    const float* __restrict__ input,
                                    float* __restrict__ output, int inputs)
{
    __shared__ float quarter[kWarps];
    const int lane = threadIdx.x % kWarp;
    const float* row = weights + static_cast<size_t>(blockIdx.x) * inputs;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < inputs; i += kThreads) {
        sum += row[i] * input[i];
    }
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
        sum += __shfl_down_sync(kAllLanes, sum, offset);
    }
    if (lane == 0) {
        quarter[threadIdx.x / kWarp] = sum;
    }
    __syncthreads();  // all quarters are stored before thread 0 adds them
    if (threadIdx.x == 0) {
        float total = 0.0f;
        for (int warp = 0; warp < kWarps; ++warp) {
            total += quarter[warp];
        }
        output[blockIdx.x] = total;
    }
}
