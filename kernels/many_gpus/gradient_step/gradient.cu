// Idea: a fully connected layer's gradient over this GPU's samples, and the update.
// From the rung before: the gradient may be stored in fewer bits, to shorten messages.
// Requires: inputs a multiple of 4, arrays aligned to 16 bytes; a grid with one row of
// blocks per output.
#include <cuda_fp16.h>

// Four neighbouring elements, for one access.
template <typename T>
struct alignas(4 * sizeof(T)) Four {
    T at[4];
};

// gradient[row][i] = scale * sum over samples of delta[sample][row] * input[sample][i],
// for the rows from `first` on.
template <typename T>
__global__ void layer_gradient(const float* __restrict__ delta,
                               const float* __restrict__ input,
                               T* __restrict__ gradient, int samples, int outputs,
                               int inputs, int first, float scale)
{
    const int row = first + blockIdx.y;
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i >= inputs) return;
    float sum[4] = {};
    for (int sample = 0; sample < samples; ++sample) {
        const float d = delta[static_cast<size_t>(sample) * outputs + row];
        const float4 x = *reinterpret_cast<const float4*>(
            input + static_cast<size_t>(sample) * inputs + i);
        sum[0] += d * x.x;
        sum[1] += d * x.y;
        sum[2] += d * x.z;
        sum[3] += d * x.w;
    }
    Four<T> out;
    for (int e = 0; e < 4; ++e) out.at[e] = static_cast<T>(scale * sum[e]);
    *reinterpret_cast<Four<T>*>(gradient + static_cast<size_t>(row) * inputs + i) = out;
}

// weights[row][i] -= rate * gradient[row][i], for the rows from `first` on.
template <typename T>
__global__ void layer_step(const float* __restrict__ before,
                           const T* __restrict__ gradient, float* __restrict__ weights,
                           int inputs, int first, float rate)
{
    const size_t row = first + blockIdx.y;
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i >= inputs) return;
    const size_t at = row * inputs + i;
    const Four<T> step = *reinterpret_cast<const Four<T>*>(gradient + at);
    float4 w = *reinterpret_cast<const float4*>(before + at);
    w.x -= rate * static_cast<float>(step.at[0]);
    w.y -= rate * static_cast<float>(step.at[1]);
    w.z -= rate * static_cast<float>(step.at[2]);
    w.w -= rate * static_cast<float>(step.at[3]);
    *reinterpret_cast<float4*>(weights + at) = w;
}
