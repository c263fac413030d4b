// Idea: load the rows four floats at a time.
// From the rung before: with kWidth = 4 a lane loads a float4 of the rows and stores
// its four floats to shared memory.
// Requires: input aligned to 16 bytes; kWidth = 4 only if blocks take whole rows and
// channels * kLength is a multiple of 4.
#include "../shape.cuh"

constexpr int kMaxThreads = 1024;

template <int kLength, int kTaps, int kWidth>
__global__ void __launch_bounds__(kMaxThreads)
    conv1d_vectorised(const float* __restrict__ input, const float* __restrict__ weight,
                      const float* __restrict__ bias, float* __restrict__ output,
                      int channels)
{
    constexpr int kTile = tile_of(kLength), kPadding = kTaps / 2,
                  kWindow = kTile + 2 * kPadding;
    constexpr int kSpan = span_of(kLength, kTaps);
    static_assert(kTaps % 2 == 1, "an even number of taps has no middle");
    static_assert(kWidth == 1 || (kWidth == 4 && kSpan == kLength),
                  "a float4 may span rows, but no gap between them");
    extern __shared__ float staged[];
    __shared__ float partial[kMaxThreads];

    const int out = blockIdx.x;
    const int first = kLength > kTile ? blockIdx.y * kTile : 0;
    // The first position of the span.
    const int start =
        kLength > kSpan ? max(0, min(first - kPadding, kLength - kSpan)) : 0;
    float sum[kTile] = {};
    for (int base = 0; base < channels; base += blockDim.x) {
        const int here = min(static_cast<int>(blockDim.x), channels - base);
        if constexpr (kWidth == 4) {
            const float4* quads = reinterpret_cast<const float4*>(
                input + static_cast<size_t>(base) * kLength);
            for (int i = threadIdx.x; i < here * kSpan / kWidth; i += blockDim.x) {
                const float4 four = quads[i];
                float* to = staged + kWidth * i;
                to[0] = four.x;
                to[1] = four.y;
                to[2] = four.z;
                to[3] = four.w;
            }
        } else {
            for (int i = threadIdx.x; i < here * kSpan; i += blockDim.x) {
                const size_t at =
                    static_cast<size_t>(base + i / kSpan) * kLength + start + i % kSpan;
                staged[i] = input[at];
            }
        }
        __syncthreads();  // all rows are staged before any thread reads them

        float window[kWindow] = {};
        float filter[kTaps] = {};
        if (threadIdx.x < here) {
#pragma unroll
            for (int j = 0; j < kWindow; ++j) {
                const int at = first + j - kPadding;
                window[j] = at >= 0 && at < kLength
                                ? staged[threadIdx.x * kSpan + at - start]
                                : 0.0f;
            }
        }
        __syncthreads();  // all rows are read before the filters overwrite them

        const float* filters =
            weight + (static_cast<size_t>(out) * channels + base) * kTaps;
        for (int i = threadIdx.x; i < here * kTaps; i += blockDim.x) {
            staged[i] = filters[i];
        }
        __syncthreads();  // all filters are staged before any thread reads them
        if (threadIdx.x < here) {
#pragma unroll
            for (int k = 0; k < kTaps; ++k) {
                filter[k] = staged[threadIdx.x * kTaps + k];
            }
        }
        __syncthreads();  // all filters are read before the next rows overwrite them

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
