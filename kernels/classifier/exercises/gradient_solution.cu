// One thread per input goes down its column: neighbouring threads read neighbouring
// weights of one row.
constexpr int kThreads = 128;

__global__ void classifier_gradient(const float* __restrict__ weights,
                                    const float* __restrict__ error,
                                    float* __restrict__ gradient, int inputs,
                                    int outputs)
{
    const int i = blockIdx.x * kThreads + threadIdx.x;
    if (i >= inputs) {
        return;
    }
    float sum = 0.0f;
    for (int row = 0; row < outputs; ++row) {
        sum += weights[static_cast<size_t>(row) * inputs + i] * error[row];
    }
    gradient[i] = sum;
}
