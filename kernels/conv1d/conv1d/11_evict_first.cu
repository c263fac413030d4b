// Idea: no filter is used again, so loading it should evict nothing else from L2.
// From the rung before: the filters are loaded evict-first (ld.global.cs).
// Requires: as the rung before.
#include "../shape.cuh"
#include "transposed.cuh"

constexpr int kChannels = 4;  // per lane

// kRowWidth: floats per load of the rows, 4 for whole rows and channels % 4 == 0.
// kFilterWidth: floats per load of the filters, 4 where channels * kTaps is a multiple
// of 4.
template <int kLength, int kTaps, int kRowWidth, int kFilterWidth>
__global__ void __launch_bounds__(most_warps(kTaps) * kWarp)
    conv1d_evict_first(const float* __restrict__ input,
                       const float* __restrict__ weight,
                       const float* __restrict__ bias, float* __restrict__ output,
                       int channels)
{
    constexpr int kTile = tile_of(kLength), kPadding = kTaps / 2,
                  kWindow = kTile + 2 * kPadding;
    constexpr int kChunk = kWarp * kChannels;  // channels per warp at a time
    // Filter loads per lane and chunk.
    constexpr int kLoads = kChunk * kTaps / (kWarp * kFilterWidth);
    static_assert(kTaps % 2 == 1, "an even number of taps has no middle");
    __shared__ __align__(
        sizeof(float4)) float transposed[most_warps(kTaps)][kChunk * kTaps];
    __shared__ float partial[most_warps(kTaps)][kTile];

    const int out = blockIdx.x;
    const int first = kLength > kTile ? blockIdx.y * kTile : 0;
    const int lane = threadIdx.x % kWarp;
    const int warp = threadIdx.x / kWarp;
    float sum[kTile] = {};
    for (int base = warp * kChunk; base < channels; base += blockDim.x * kChannels) {
        // All loads come first, so that all are in flight at once.
        const int floats = min(kChunk, channels - base) * kTaps;
        const float* filters =
            weight + (static_cast<size_t>(out) * channels + base) * kTaps;
        Pack<kFilterWidth> loaded[kLoads] = {};
        load_filters(loaded, filters, floats, lane,
                     [](auto* from) { return load_once(from); });
        const int channel = base + lane * kChannels;
        float window[kChannels][kWindow] = {};
        if constexpr (kRowWidth == 4) {
            if (channel < channels) {
                const float* rows = input + static_cast<size_t>(channel) * kLength;
#pragma unroll
                for (int i = 0; i < kChannels * kLength / 4; ++i) {
                    const Pack<4> four = reinterpret_cast<const Pack<4>*>(rows)[i];
#pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        window[(4 * i + e) / kLength]
                              [kPadding + (4 * i + e) % kLength] = four.at[e];
                    }
                }
            }
        } else {
#pragma unroll
            for (int c = 0; c < kChannels; ++c) {
#pragma unroll
                for (int j = 0; j < kWindow; ++j) {
                    const int at = first + j - kPadding;
                    if (channel + c < channels && at >= 0 && at < kLength) {
                        window[c][j] =
                            input[static_cast<size_t>(channel + c) * kLength + at];
                    }
                }
            }
        }

        __syncwarp();  // all lanes have read the previous round's filters
        store_filters<kChunk * kTaps>(transposed[warp], loaded, lane);
        __syncwarp();  // the warp's filters are stored before any lane reads them
        float filter[kChannels * kTaps];
#pragma unroll
        for (int q = 0; q < kTaps; ++q) {
            const Pack<4> four =
                reinterpret_cast<const Pack<4>*>(transposed[warp])[lane * kTaps + q];
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                filter[4 * q + e] = four.at[e];
            }
        }
        multiply<kTile, kTaps>(sum, window, filter);
    }

    store_sums(partial, sum, warp, lane);
    if (threadIdx.x < kTile && first + threadIdx.x < kLength) {
        output[static_cast<size_t>(out) * kLength + first + threadIdx.x] =
            add_warps(partial) + bias[out];
    }
}
