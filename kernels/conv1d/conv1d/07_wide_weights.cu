// Idea: load the filters four floats at a time too.
// From the rung before: with kFilterWidth = 4 a lane loads a float4 of the filters.
// Requires: as the rung before; weight aligned to 16 bytes; kFilterWidth = 4 only if
// channels * kTaps is a multiple of 4.
#include "../atomics.cuh"
#include "../shape.cuh"

template <int kLength, int kTaps, int kWidth, int kFilterWidth, int kChannels>
__global__ void __launch_bounds__(most_threads(kChannels))
    conv1d_wide_weights(const float* __restrict__ input,
                        const float* __restrict__ weight, float* __restrict__ output,
                        int channels)
{
    constexpr int kTile = tile_of(kLength), kPadding = kTaps / 2,
                  kWindow = kTile + 2 * kPadding;
    constexpr int kSpan = span_of(kLength, kTaps);
    static_assert(kTaps % 2 == 1, "an even number of taps has no middle");
    constexpr int kPadEvery = pad_every(kSpan * kChannels);
    static_assert(kWidth == 1 || (kWidth == 4 && kSpan == kLength),
                  "a float4 may span rows, but no gap between them");
    extern __shared__ __align__(sizeof(float4)) float staged[];

    const int out = blockIdx.x;
    const int first = kLength > kTile ? blockIdx.y * kTile : 0;
    // The first position of the span.
    const int start =
        kLength > kSpan ? max(0, min(first - kPadding, kLength - kSpan)) : 0;
    float sum[kTile] = {};
    for (int base = 0; base < channels; base += blockDim.x * kChannels) {
        const int here = min(static_cast<int>(blockDim.x) * kChannels, channels - base);
        if constexpr (kWidth == 4) {
            const float4* quads = reinterpret_cast<const float4*>(
                input + static_cast<size_t>(base) * kLength);
            for (int i = threadIdx.x; i < here * kSpan / kWidth; i += blockDim.x) {
                const float4 four = quads[i];
                float* to = staged + kWidth * i + kWidth * i / kPadEvery;
                to[0] = four.x;
                to[1] = four.y;
                to[2] = four.z;
                to[3] = four.w;
            }
        } else {
            for (int i = threadIdx.x; i < here * kSpan; i += blockDim.x) {
                const size_t at =
                    static_cast<size_t>(base + i / kSpan) * kLength + start + i % kSpan;
                staged[i + i / kPadEvery] = input[at];
            }
        }
        __syncthreads();  // all rows are staged before any thread reads them

        float window[kChannels][kWindow] = {};
        float filter[kChannels][kTaps] = {};
#pragma unroll
        for (int c = 0; c < kChannels; ++c) {
            const int row = threadIdx.x * kChannels + c;
#pragma unroll
            for (int j = 0; j < kWindow; ++j) {
                const int at = first + j - kPadding;
                const int i = row * kSpan + at - start;
                if (row < here && at >= 0 && at < kLength) {
                    window[c][j] = staged[i + i / kPadEvery];
                }
            }
        }
        __syncthreads();  // all rows are read before the filters overwrite them

        const float* filters =
            weight + (static_cast<size_t>(out) * channels + base) * kTaps;
        if constexpr (kFilterWidth == 4) {
            const float4* quads = reinterpret_cast<const float4*>(filters);
            for (int i = threadIdx.x; i < here * kTaps / kFilterWidth;
                 i += blockDim.x) {
                reinterpret_cast<float4*>(staged)[i] = quads[i];
            }
        } else {
            for (int i = threadIdx.x; i < here * kTaps; i += blockDim.x) {
                staged[i] = filters[i];
            }
        }
        __syncthreads();  // all filters are staged before any thread reads them
#pragma unroll
        for (int c = 0; c < kChannels; ++c) {
            const int row = threadIdx.x * kChannels + c;
#pragma unroll
            for (int k = 0; k < kTaps; ++k) {
                if (row < here) {
                    filter[c][k] = staged[row * kTaps + k];
                }
            }
        }
        __syncthreads();  // all filters are read before the next rows overwrite them

#pragma unroll
        for (int p = 0; p < kTile; ++p) {
#pragma unroll
            for (int k = 0; k < kTaps; ++k) {
#pragma unroll
                for (int c = 0; c < kChannels; ++c) {
                    sum[p] += window[c][p + k] * filter[c][k];
                }
            }
        }
    }

    add_to_outputs(output, sum, out, first, kLength);
}
