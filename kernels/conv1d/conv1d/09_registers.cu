// Idea: share nothing: a thread loads its rows and filters into registers as float4.
// From the rung before: shared memory only for one sum per warp and position; one
// launch; sums in a fixed order.
// Requires: input and weight aligned to 16 bytes; blocks of whole warps; kWide only for
// whole rows and channels % 4 == 0.
#include "../../common/warp.cuh"
#include "../shape.cuh"

constexpr int kMaxThreads = 512;
constexpr int kChannels = 4;  // per thread: four rows or filters make whole float4s

template <int kLength, int kTaps, bool kWide>
__global__ void __launch_bounds__(kMaxThreads)
    conv1d_registers(const float* __restrict__ input, const float* __restrict__ weight,
                     const float* __restrict__ bias, float* __restrict__ output,
                     int channels)
{
    constexpr int kTile = tile_of(kLength), kPadding = kTaps / 2,
                  kWindow = kTile + 2 * kPadding;
    static_assert(kTaps % 2 == 1, "an even number of taps has no middle");
    static_assert(!kWide || kTile == kLength,
                  "a float4 may span rows, but no gap between them");
    __shared__ float partial[kMaxThreads / kWarp][kTile];

    const int out = blockIdx.x;
    const int first = kLength > kTile ? blockIdx.y * kTile : 0;
    const float* filters = weight + static_cast<size_t>(out) * channels * kTaps;
    float sum[kTile] = {};
    for (int base = threadIdx.x * kChannels; base < channels;
         base += blockDim.x * kChannels) {
        float window[kChannels][kWindow] = {};
        float filter[kChannels * kTaps] = {};
        if constexpr (kWide) {
            const float4* taps = reinterpret_cast<const float4*>(
                filters + static_cast<size_t>(base) * kTaps);
#pragma unroll
            for (int q = 0; q < kTaps; ++q) {
                const float4 four = taps[q];
                filter[4 * q] = four.x;
                filter[4 * q + 1] = four.y;
                filter[4 * q + 2] = four.z;
                filter[4 * q + 3] = four.w;
            }
            const float4* rows = reinterpret_cast<const float4*>(
                input + static_cast<size_t>(base) * kLength);
#pragma unroll
            for (int q = 0; q < kLength; ++q) {
                const float4 four = rows[q];
                const float values[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    window[(4 * q + e) / kLength][kPadding + (4 * q + e) % kLength] =
                        values[e];
                }
            }
        } else {
#pragma unroll
            for (int c = 0; c < kChannels; ++c) {
                if (base + c < channels) {
#pragma unroll
                    for (int k = 0; k < kTaps; ++k) {
                        filter[c * kTaps + k] =
                            filters[static_cast<size_t>(base + c) * kTaps + k];
                    }
#pragma unroll
                    for (int j = 0; j < kWindow; ++j) {
                        const int at = first + j - kPadding;
                        if (at >= 0 && at < kLength) {
                            window[c][j] =
                                input[static_cast<size_t>(base + c) * kLength + at];
                        }
                    }
                }
            }
        }
#pragma unroll
        for (int c = 0; c < kChannels; ++c) {
#pragma unroll
            for (int k = 0; k < kTaps; ++k) {
#pragma unroll
                for (int p = 0; p < kTile; ++p) {
                    sum[p] += window[c][p + k] * filter[c * kTaps + k];
                }
            }
        }
    }

    const int lane = threadIdx.x % kWarp;
#pragma unroll
    for (int p = 0; p < kTile; ++p) {
        sum[p] = warp_sum(sum[p]);
        if (lane == 0) {
            partial[threadIdx.x / kWarp][p] = sum[p];
        }
    }
    __syncthreads();  // all warps have stored their sums before any are added
    if (threadIdx.x < kTile && first + threadIdx.x < kLength) {
        float total = 0.0f;
        for (int warp = 0; warp < blockDim.x / kWarp; ++warp) {
            total += partial[warp][threadIdx.x];
        }
        output[static_cast<size_t>(out) * kLength + first + threadIdx.x] =
            total + bias[out];
    }
}
