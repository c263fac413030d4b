// Idea: one kernel per operation, as a framework runs a network.
// From the rung before: the first rung.
// Requires: blocks of kThreads threads; grids as noted at each kernel.
#include "../../common/warp.cuh"
#include "activation.cuh"
#include "layers.cuh"

constexpr int kThreads = 128;
// Grid: one block per kThreads elements of a sample's embedding; samples.
template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    unet_embed(const int* __restrict__ timestep, float* __restrict__ to)
{
    const int i = blockIdx.x * kThreads + threadIdx.x;
    if (i < kWidth) {
        to[blockIdx.y * kWidth + i] = embedding<kWidth>(timestep[blockIdx.y], i);
    }
}

// One warp per output of each sample.
__global__ void __launch_bounds__(kThreads)
    unet_linear(const float* __restrict__ parameters, int weight, int bias,
                const float* __restrict__ from, float* __restrict__ to, int inputs,
                int outputs)
{
    const int output = (blockIdx.x * kThreads + threadIdx.x) / 32;
    if (output >= outputs) return;
    float sum = 0.0f;
    for (int i = threadIdx.x % 32; i < inputs; i += 32) {
        sum += parameters[weight + output * inputs + i] * from[blockIdx.y * inputs + i];
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) {
        to[blockIdx.y * outputs + output] = sum + parameters[bias + output];
    }
}

__global__ void __launch_bounds__(kThreads)
    unet_mish(const float* __restrict__ from, float* __restrict__ to, int count)
{
    const int i = blockIdx.x * kThreads + threadIdx.x;
    if (i < count) to[i] = mish(from[i]);
}

__global__ void __launch_bounds__(kThreads)
    unet_add(const float* __restrict__ one, const float* __restrict__ other,
             float* __restrict__ to, int count)
{
    const int i = blockIdx.x * kThreads + threadIdx.x;
    if (i < count) to[i] = one[i] + other[i];
}

// For each sample: `first` floats of one array, then `second` floats of the other.
__global__ void __launch_bounds__(kThreads)
    unet_concatenate(const float* __restrict__ one, int first,
                     const float* __restrict__ other, int second,
                     float* __restrict__ to)
{
    const int i = blockIdx.x * kThreads + threadIdx.x;
    if (i < first + second) {
        to[blockIdx.y * (first + second) + i] =
            i < first ? one[blockIdx.y * first + i]
                      : other[blockIdx.y * second + i - first];
    }
}

// Transposes the matrix of each sample.
__global__ void __launch_bounds__(kThreads)
    unet_transpose(const float* __restrict__ from, float* __restrict__ to, int rows,
                   int cols)
{
    const int i = blockIdx.x * kThreads + threadIdx.x;
    if (i < rows * cols) {
        to[(blockIdx.y * cols + i % cols) * rows + i / cols] =
            from[blockIdx.y * rows * cols + i];
    }
}

// y = x * scale + shift for each sample; `film` has all scales, then all shifts.
__global__ void __launch_bounds__(kThreads)
    unet_film(const float* __restrict__ from, const float* __restrict__ film,
              float* __restrict__ to, int channels, int length)
{
    const int i = blockIdx.x * kThreads + threadIdx.x;
    const int count = channels * length;
    if (i < count) {
        const float* values = film + blockIdx.y * 2 * channels + i / length;
        to[blockIdx.y * count + i] =
            from[blockIdx.y * count + i] * values[0] + values[channels];
    }
}

// One block per group of each sample: `count` floats.
__global__ void __launch_bounds__(kThreads)
    unet_norm(const float* __restrict__ parameters, int gamma, int beta,
              const float* __restrict__ from, float* __restrict__ to, int channels,
              int length)
{
    __shared__ float total[2];
    const int count = channels * length;
    const int start = (blockIdx.y * kGroups + blockIdx.x) * count;
    if (threadIdx.x < 2) total[threadIdx.x] = 0.0f;
    __syncthreads();  // the sums are zero
    float sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += kThreads) sum += from[start + i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) atomicAdd(total, sum);
    __syncthreads();  // the sum is complete
    const float mean = total[0] / count;
    sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += kThreads) {
        const float off = from[start + i] - mean;
        sum += off * off;
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) atomicAdd(total + 1, sum);
    __syncthreads();  // the sum of squares is complete
    const float scale = rsqrtf(total[1] / count + kEpsilon);
    for (int i = threadIdx.x; i < count; i += kThreads) {
        const int channel = blockIdx.x * channels + i / length;
        to[start + i] = (from[start + i] - mean) * scale * parameters[gamma + channel] +
                        parameters[beta + channel];
    }
}

// One warp per output channel of each sample; lanes divide up the input channels.
template <int kKind, int kLength>
__global__ void __launch_bounds__(kThreads)
    unet_convolve(const float* __restrict__ parameters, int weight, int bias,
                  const float* __restrict__ from, float* __restrict__ to, int inputs,
                  int outputs)
{
    constexpr int kTaps = taps_of(kKind);
    constexpr int kAfter = length_after(kKind, kLength);
    const int output = (blockIdx.x * kThreads + threadIdx.x) / 32;
    if (output >= outputs) return;
    float sum[kAfter] = {};
    for (int i = threadIdx.x % 32; i < inputs; i += 32) {
        const int filter = kKind == kUp ? i * outputs + output : output * inputs + i;
        float x[1][kLength], w[kTaps];
#pragma unroll
        for (int t = 0; t < kTaps; ++t) w[t] = parameters[weight + filter * kTaps + t];
#pragma unroll
        for (int p = 0; p < kLength; ++p) {
            x[0][p] = from[(blockIdx.y * inputs + i) * kLength + p];
        }
        multiply<kKind>(sum, x, w);
    }
#pragma unroll
    for (int q = 0; q < kAfter; ++q) {
        sum[q] = warp_sum(sum[q]);
        if (threadIdx.x % 32 == 0) {
            to[(blockIdx.y * outputs + output) * kAfter + q] =
                sum[q] + parameters[bias + output];
        }
    }
}
