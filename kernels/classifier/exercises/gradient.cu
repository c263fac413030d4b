// Backpropagation: gradient[i] is the sum over all outputs of error[row] *
// weights[row][i]. Correct, and slow: a warp per input, whose lanes read one column of
// the weights. Let every load of weights take few sectors.
constexpr int kThreads = 128;
constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

__global__ void classifier_gradient(const float* __restrict__ weights,
                                    const float* __restrict__ error,
                                    float* __restrict__ gradient, int inputs,
                                    int outputs)
{
    const int lane = threadIdx.x % kWarp;
    const int i = (blockIdx.x * kThreads + threadIdx.x) / kWarp;
    float sum = 0.0f;
    for (int row = lane; row < outputs && i < inputs; row += kWarp) {
        sum += weights[static_cast<size_t>(row) * inputs + i] * error[row];
    }
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
        sum += __shfl_down_sync(kAllLanes, sum, offset);
    }
    if (lane == 0 && i < inputs) {
        gradient[i] = sum;
    }
}
