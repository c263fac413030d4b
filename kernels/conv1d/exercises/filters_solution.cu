// Each lane weighs the five taps of its own filter: tap t counts t + 1 times.
constexpr int kWarp = 32;
constexpr int kThreads = 64;
constexpr int kTaps = 5;

__global__ void weigh(const float* __restrict__ filters, float* __restrict__ values,
                      int n)
{
    __shared__ float transposed[kThreads / kWarp][kWarp * kTaps];
    const int lane = threadIdx.x % kWarp;
    float* mine = transposed[threadIdx.x / kWarp];
    // The warp's first filter.
    const int first = blockIdx.x * kThreads + threadIdx.x - lane;
    for (int i = lane; i < kWarp * kTaps; i += kWarp) {
        if (first * kTaps + i < n * kTaps) {
            mine[i] = filters[first * kTaps + i];
        }
    }
    __syncwarp();  // the warp's filters are stored before any lane reads them
    if (first + lane < n) {
        float value = 0.0f;
        for (int t = 0; t < kTaps; ++t) {
            value += (t + 1) * mine[lane * kTaps + t];
        }
        values[first + lane] = value;
    }
}
