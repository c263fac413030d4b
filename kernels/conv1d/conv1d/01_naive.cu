// Idea: one block per output channel, one thread per input channel, one tree per sum.
// From the rung before: the first rung.
// Requires: a block of a power of two threads, at most kMaxThreads; a grid of output
// channels and tiles of positions.
#include "../shape.cuh"

constexpr int kMaxThreads = 1024;

template <int kLength, int kTaps>
__global__ void __launch_bounds__(kMaxThreads)
    conv1d_naive(const float* __restrict__ input, const float* __restrict__ weight,
                 const float* __restrict__ bias, float* __restrict__ output,
                 int channels)
{
    constexpr int kTile = tile_of(kLength), kPadding = kTaps / 2,
                  kWindow = kTile + 2 * kPadding;
    static_assert(kTaps % 2 == 1, "an even number of taps has no middle");
    __shared__ float partial[kMaxThreads];

    const int out = blockIdx.x;
    const int first = kLength > kTile ? blockIdx.y * kTile : 0;
    float sum[kTile] = {};
    for (int channel = threadIdx.x; channel < channels; channel += blockDim.x) {
        float window[kWindow];
        float filter[kTaps];
#pragma unroll
        for (int j = 0; j < kWindow; ++j) {
            const int at = first + j - kPadding;
            window[j] = at >= 0 && at < kLength
                            ? input[static_cast<size_t>(channel) * kLength + at]
                            : 0.0f;
        }
#pragma unroll
        for (int k = 0; k < kTaps; ++k) {
            filter[k] =
                weight[(static_cast<size_t>(out) * channels + channel) * kTaps + k];
        }
#pragma unroll
        for (int p = 0; p < kTile; ++p) {
#pragma unroll
            for (int k = 0; k < kTaps; ++k) {
                sum[p] += window[p + k] * filter[k];
            }
        }
    }

#pragma unroll
    for (int p = 0; p < kTile; ++p) {
        partial[threadIdx.x] = sum[p];
        __syncthreads();  // all sums are stored before any thread adds two of them
        for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
            if (threadIdx.x < stride) {
                partial[threadIdx.x] += partial[threadIdx.x + stride];
            }
            __syncthreads();  // one level of the tree is complete before the next
        }
        if (threadIdx.x == 0 && first + p < kLength) {
            output[static_cast<size_t>(out) * kLength + first + p] =
                partial[0] + bias[out];
        }
    }
}
