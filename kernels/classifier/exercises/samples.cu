// A warp per output, for kSamples input vectors. Correct, but each weight is loaded
// kSamples times. Load it once.
constexpr int kThreads = 128;
constexpr int kWarp = 32;
constexpr int kSamples = 4;
constexpr unsigned kAllLanes = 0xffffffffu;

__global__ void classifier_samples(const float* __restrict__ weights,
                                   const float* __restrict__ input,
                                   float* __restrict__ output, int inputs, int outputs)
{
    const int lane = threadIdx.x % kWarp;
    const int row = (blockIdx.x * kThreads + threadIdx.x) / kWarp;
    if (row >= outputs) {
        return;
    }
    for (int sample = 0; sample < kSamples; ++sample) {
        float sum = 0.0f;
        for (int i = lane; i < inputs; i += kWarp) {
            sum += weights[static_cast<size_t>(row) * inputs + i] *
                   input[static_cast<size_t>(sample) * inputs + i];
        }
        for (int offset = kWarp / 2; offset > 0; offset /= 2) {
            sum += __shfl_down_sync(kAllLanes, sum, offset);
        }
        if (lane == 0) {
            output[sample * outputs + row] = sum;
        }
    }
}
