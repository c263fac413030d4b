// The loops are swapped: a weight in a register multiplies the inputs of all samples,
// and each sample has its own sum.
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
    float sum[kSamples] = {};
    for (int i = lane; i < inputs; i += kWarp) {
        const float weight = weights[static_cast<size_t>(row) * inputs + i];
#pragma unroll
        for (int sample = 0; sample < kSamples; ++sample) {
            sum[sample] += weight * input[static_cast<size_t>(sample) * inputs + i];
        }
    }
#pragma unroll
    for (int sample = 0; sample < kSamples; ++sample) {
        for (int offset = kWarp / 2; offset > 0; offset /= 2) {
            sum[sample] += __shfl_down_sync(kAllLanes, sum[sample], offset);
        }
        if (lane == 0) {
            output[sample * outputs + row] = sum[sample];
        }
    }
}
